//! `import_stats`: all that was skipped, repaired, guessed or did not add up.

use std::collections::BTreeMap;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

use super::devices::Devices;
use super::words::WITHOUT_COLUMN;
use crate::pickle::State;
use crate::schema::ImportStat;

/// What a statistic means for the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Severity {
    /// Good to know.
    Info,
    /// Something the file had is missing, or was missing in it.
    DataLoss,
    /// Something contradicts itself.
    Error,
}

impl Severity {
    fn as_str(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::DataLoss => "data_loss",
            Self::Error => "error",
        }
    }
}

/// Whether no device can have so many bytes: 256 TiB and more. Sums of a few million smaller ones fit in 64 bits.
#[inline]
pub(super) fn is_implausible(size: i64) -> bool {
    size >= 1 << 48
}

/// Name and meaning of the statistic that counts them.
pub(super) const IMPLAUSIBLE: (&str, &str) = (
    "implausible_sizes",
    "sizes of 2^48 bytes and more, which no device has: numbers that they are part of mean nothing",
);

#[derive(Debug)]
struct Stat {
    severity: Severity,
    value: i64,
    doc: String,
}

/// Names a file can make up before the rest is counted together.
const MOST_NAMES: usize = 256;

/// Collects the statistics of one import.
#[derive(Debug, Default)]
pub(super) struct Stats {
    by_name: BTreeMap<(String, Option<i64>), Stat>,
    /// By table and key.
    unknown_keys: HashMap<(&'static str, u32), i64, RandomState>,
    unknown_actions: HashMap<u32, i64, RandomState>,
    unknown_states: HashMap<u32, i64, RandomState>,
    rest: i64,
    /// Keys that stood twice in a dict.
    pub(super) duplicate_keys: i64,
}

fn bump<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, i64, RandomState>, rest: &mut i64, key: K) {
    if let Some(count) = counts.get_mut(&key) {
        *count += 1;
    } else if counts.len() < MOST_NAMES {
        counts.insert(key, 1);
    } else {
        *rest += 1;
    }
}

impl Stats {
    /// Adds to a statistic, if there is anything to add.
    pub(super) fn add(
        &mut self,
        severity: Severity,
        name: &str,
        device: Option<i64>,
        value: i64,
        doc: impl Into<String>,
    ) {
        if value != 0 {
            let stat = self.by_name.entry((name.to_owned(), device)).or_insert_with(|| Stat {
                severity,
                value: 0,
                doc: doc.into(),
            });
            stat.value = stat.value.saturating_add(value);
        }
    }

    /// Counts a key that no column takes.
    #[cold]
    pub(super) fn unknown_key(&mut self, table: &'static str, key: u32) {
        bump(&mut self.unknown_keys, &mut self.rest, (table, key));
    }

    /// Counts an action that is not known.
    #[cold]
    pub(super) fn unknown_action(&mut self, action: u32) {
        bump(&mut self.unknown_actions, &mut self.rest, action);
    }

    /// Counts a block state that is not known.
    #[cold]
    pub(super) fn unknown_state(&mut self, block_state: u32) {
        bump(&mut self.unknown_states, &mut self.rest, block_state);
    }

    /// Turns what was counted by name into statistics.
    pub(super) fn name_unknown(&mut self, state: &State) {
        let keys: Vec<_> = self.unknown_keys.drain().collect();
        for ((table, key), count) in keys {
            let key = state.text(key);
            let (kind, doc) = if WITHOUT_COLUMN.contains(&key) {
                ("no_column", "a key of the format that the tables have no column for; its value is not kept")
            } else {
                ("unknown_key", "a key this version does not know; its value is not kept")
            };
            self.add(Severity::Info, &format!("{kind}:{table}.{}", shortened(key)), None, count, doc);
        }
        let actions: Vec<_> = self.unknown_actions.drain().collect();
        for (action, count) in actions {
            let name = format!("unknown_action:{}", shortened(state.text(action)));
            let doc = "events with an action this version does not know; kept, and counted as no change";
            self.add(Severity::DataLoss, &name, None, count, doc);
        }
        let states: Vec<_> = self.unknown_states.drain().collect();
        for (block_state, count) in states {
            let name = format!("unknown_state:{}", shortened(state.text(block_state)));
            self.add(
                Severity::DataLoss,
                &name,
                None,
                count,
                "blocks in a state this version does not know; kept",
            );
        }
        let rest = self.rest;
        self.add(Severity::Info, "unknown_names", None, rest, "further unknown keys, actions and states");
        let duplicates = self.duplicate_keys;
        let doc = "keys that stood twice in one dict; the last one counts, as in Python";
        self.add(Severity::DataLoss, "duplicate_keys", None, duplicates, doc);
    }

    /// The rows, by name and device.
    pub(super) fn rows(&self, devices: &Devices) -> Vec<ImportStat> {
        self.by_name
            .iter()
            .map(|((name, device), stat)| ImportStat {
                name: name.clone(),
                severity: stat.severity.as_str().to_owned(),
                device_id: device.and_then(|index| devices.id(index)),
                value: stat.value,
                doc: stat.doc.clone(),
            })
            .collect()
    }

    /// How many of the rows are no mere information.
    pub(super) fn warnings(&self) -> u64 {
        let count = self.by_name.values().filter(|stat| stat.severity != Severity::Info).count();
        u64::try_from(count).unwrap_or(u64::MAX)
    }
}

fn shortened(name: &str) -> String {
    name.chars().take(80).collect()
}
