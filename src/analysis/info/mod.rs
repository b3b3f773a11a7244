//! Info: what a snapshot holds, what it lacks, what each absence costs, and how to record a better one.

mod dialect_gap;
mod figures;
mod words;

use serde_json::{Value, json};

use self::dialect_gap::{Difference, dialect_gap};
use self::words::{Field, advice, history};
use super::facts::{ImportNote, SnapshotFacts};
use super::language::{Lang, Text};
use super::outcome::share;
use crate::engine::{Engine, row};
use crate::error::Result;

row! {
    /// Rows of a table.
    pub struct TableCount from "table_counts" {
        /// The table.
        table_name: String,
        /// Its rows.
        row_count: i64,
    }
}

row! {
    /// How many rows have a field.
    pub struct FieldPresence from "field_presence" {
        /// `events`, `segments`, `blocks` or `snapshot`.
        part: String,
        /// Column of the part's table.
        field: String,
        /// Rows of the part.
        row_count: i64,
        /// Rows that have the field.
        present_count: i64,
    }
}

row! {
    /// What was recorded of a device.
    pub struct Recording from "recording" {
        /// Device number in the snapshot; -1 is pinned host memory.
        device_index: i64,
        /// Events.
        event_count: i64,
        /// Events with a call stack.
        stack_count: i64,
        /// Addresses whose first event is a free.
        first_free_count: i64,
        /// Events the ring buffer can hold.
        max_entries: Option<i64>,
        /// More than 0 where the snapshot says that the ring buffer overflowed.
        overflow_count: Option<i64>,
        /// Events left out when the snapshot was read.
        left_out_count: i64,
        /// Bytes in active blocks.
        active_bytes: i64,
        /// Bytes in active blocks with a call stack.
        active_stack_bytes: i64,
        /// Allocations that began before the first event that is left.
        earlier_count: i64,
    }
}

/// Whether the events of a device go back to the beginning of its recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum History {
    /// There are no events.
    Never,
    /// There is one event, the last one: `enabled='state'`, or a ring buffer of one entry.
    OneEntry,
    /// The snapshot says that the oldest events are lost.
    Overflowed,
    /// There is memory whose allocation is not among the events: overflowed, or recorded from later on.
    Incomplete,
    /// Events were left out when the snapshot was read.
    Cut,
    /// The ring buffer has room left.
    Whole,
    /// Nothing tells.
    Unknown,
}

impl History {
    /// The name that JSON uses.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Never => "never_enabled",
            Self::OneEntry => "one_entry",
            Self::Overflowed => "overflowed",
            Self::Incomplete => "overflowed_or_late",
            Self::Whole => "not_overflowed",
            Self::Cut | Self::Unknown => "unknown",
        }
    }
}

impl Recording {
    /// What the numbers say about the beginning of the recording.
    #[must_use]
    pub fn history(&self) -> History {
        let seen = self.event_count.saturating_add(self.left_out_count);
        match (seen, self.overflow_count, self.max_entries) {
            (0, ..) => History::Never,
            (_, Some(1..), _) => History::Overflowed,
            (1, ..) => History::OneEntry,
            // A larger ring buffer than there are events is whole, however late it was switched on.
            (_, _, Some(most)) if seen < most && self.first_free_count == 0 => History::Whole,
            _ if self.left_out_count > 0 => History::Cut,
            _ if self.first_free_count > 0 || self.earlier_count > 0 => History::Incomplete,
            _ => History::Unknown,
        }
    }

    fn stack_ratio(&self) -> Option<f64> {
        share(self.active_stack_bytes, self.active_bytes)
    }

    fn json(&self) -> Value {
        json!({
            "device_index": self.device_index,
            "event_count": self.event_count,
            "events_left_out": self.left_out_count,
            "events_without_stack": self.event_count - self.stack_count,
            "history": self.history().name(),
            "first_free_count": self.first_free_count,
            "earlier_count": self.earlier_count,
            "max_entries": self.max_entries,
            "active_bytes": self.active_bytes,
            "active_stack_bytes": self.active_stack_bytes,
            "active_stack_ratio": self.stack_ratio(),
        })
    }
}

/// Something that a snapshot does not say.
#[derive(Debug, Clone)]
pub struct Gap {
    /// `history`, or the part and the field that is missing, such as `events.time_us`.
    pub name: String,
    /// Device it is about; none for all.
    pub device: Option<i64>,
    /// What it costs.
    pub cost: Text,
}

/// What a snapshot holds and lacks.
#[derive(Debug)]
pub struct Info {
    snapshot: Option<SnapshotFacts>,
    tables: Vec<TableCount>,
    fields: Vec<FieldPresence>,
    recordings: Vec<Recording>,
    /// Whether rows are missing or wrong because of the file.
    lost_rows: bool,
}

impl Info {
    /// Looks into a store.
    ///
    /// # Errors
    /// A relation failed.
    pub fn read(engine: &Engine) -> Result<Self> {
        Ok(Self {
            snapshot: SnapshotFacts::read(engine)?,
            tables: engine.rows(&[])?,
            fields: engine.rows(&[])?,
            recordings: engine.rows(&[])?,
            lost_rows: ImportNote::read(engine)?.iter().any(ImportNote::is_loss),
        })
    }

    /// The snapshot it speaks of.
    #[must_use]
    pub fn snapshot(&self) -> Option<&SnapshotFacts> {
        self.snapshot.as_ref()
    }

    /// What the snapshot does not say, and what that costs; a history that goes back to its beginning is no gap.
    #[must_use]
    pub fn gaps(&self) -> Vec<Gap> {
        let histories = self
            .devices()
            .filter(|recording| !matches!(recording.history(), History::Whole | History::Unknown))
            .map(|recording| Gap {
                name: "history".to_owned(),
                device: Some(recording.device_index),
                cost: history(recording),
            });
        let fields = self.known_fields().filter_map(|(presence, field)| {
            let cost = field.cost(presence.row_count, presence.present_count)?;
            Some(Gap { name: format!("{}.{}", presence.part, presence.field), device: None, cost })
        });
        histories.chain(fields).collect()
    }

    /// How to record what is missing, in one line.
    #[must_use]
    pub fn advice(&self) -> Text {
        let is_npu = self.snapshot.as_ref().is_some_and(SnapshotFacts::is_npu);
        advice(self, is_npu)
    }

    /// Whether another recording could say more than this one.
    #[must_use]
    pub fn can_be_better(&self) -> bool {
        self.lost_rows || self.has_unexplained() || !matches!(self.worst(), History::Whole | History::Unknown)
    }

    fn has_unexplained(&self) -> bool {
        self.devices().any(|recording| recording.active_stack_bytes < recording.active_bytes)
    }

    fn devices(&self) -> impl Iterator<Item = &Recording> {
        self.recordings.iter().filter(|recording| recording.device_index >= 0)
    }

    /// The history that says least.
    fn worst(&self) -> History {
        let worst = self.devices().map(Recording::history).min_by_key(|history| match history {
            History::Never => 0,
            History::OneEntry => 1,
            History::Overflowed => 2,
            History::Cut => 3,
            History::Incomplete => 4,
            History::Unknown => 5,
            History::Whole => 6,
        });
        worst.unwrap_or(History::Never)
    }

    /// What no better recording of this make would add.
    fn dialect_gap(&self) -> Vec<Difference> {
        self.snapshot.as_ref().map_or_else(Vec::new, |snapshot| dialect_gap(snapshot.is_npu()))
    }

    fn known_fields(&self) -> impl Iterator<Item = (&FieldPresence, Field)> {
        self.fields.iter().filter_map(|presence| {
            Field::find(&presence.part, &presence.field).map(|field| (presence, field))
        })
    }

    /// The answer as an object.
    #[must_use]
    pub fn json(&self, lang: Lang) -> Value {
        let fields: Vec<Value> = self
            .known_fields()
            .map(|(presence, field)| {
                let cost = field.cost(presence.row_count, presence.present_count);
                json!({
                    "part": presence.part,
                    "field": presence.field,
                    "row_count": presence.row_count,
                    "present_count": presence.present_count,
                    "cost": cost.map(|cost| cost.get(lang).to_owned()),
                })
            })
            .collect();
        let tables: serde_json::Map<String, Value> =
            self.tables.iter().map(|table| (table.table_name.clone(), json!(table.row_count))).collect();
        json!({
            "tables": tables,
            "devices": self.recordings.iter().map(Recording::json).collect::<Vec<_>>(),
            "fields": fields,
            "advice": self.advice().get(lang),
            "dialect_gap": self.dialect_gap().iter().map(|difference| json!({
                "kind": difference.kind.name(),
                "name": difference.name,
                "effect": difference.effect.get(lang),
                "way_around": difference.way_around.get(lang),
            })).collect::<Vec<_>>(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(events: i64, first_frees: i64, most: Option<i64>, overflowed: Option<i64>) -> Recording {
        Recording {
            earlier_count: first_frees,
            device_index: 0,
            event_count: events,
            stack_count: 0,
            first_free_count: first_frees,
            max_entries: most,
            overflow_count: overflowed,
            left_out_count: 0,
            active_bytes: 0,
            active_stack_bytes: 0,
        }
    }

    #[test]
    fn the_beginning_of_a_recording_is_known_unknown_or_lost() {
        for (recording, expected) in [
            (recording(0, 0, None, None), History::Never),
            (recording(1, 0, None, None), History::OneEntry),
            (recording(9, 0, Some(9), Some(1)), History::Overflowed),
            (recording(9, 2, None, None), History::Incomplete),
            (recording(9, 2, Some(100), None), History::Incomplete),
            (recording(9, 0, Some(100), None), History::Whole),
            (recording(9, 0, Some(9), None), History::Unknown),
            (recording(9, 0, None, None), History::Unknown),
        ] {
            assert_eq!(recording.history(), expected, "{recording:?}");
        }
        let earlier = Recording { earlier_count: 3, ..recording(9, 0, None, None) };
        assert_eq!(earlier.history(), History::Incomplete, "none of the three was freed");
        let part = Recording { left_out_count: 5, ..recording(9, 2, None, None) };
        assert_eq!(part.history(), History::Cut, "what was left out says nothing of the recording");
    }
}
