//! What can be kept of a damaged snapshot: the rows that were complete before the damage, and what the top level had said.

use super::dialect::TopKeys;
use super::fault::Fault;
use super::import::Import;
use super::stats::Severity;
use super::top::Top;
use super::{SEGMENT, Salvaged, words};
use crate::pickle::{NodeKind, PickleError, PickleErrorKind, State, Value};
use crate::schema::note;

impl Fault {
    /// Whether the file is to blame, and not the system or the store.
    pub(super) fn is_damage(&self) -> bool {
        match self {
            Self::Pickle(PickleError { kind: PickleErrorKind::Io(_), .. }) | Self::Other(_) => false,
            Self::Pickle(_) | Self::Shape { .. } => true,
        }
    }

    /// Where the damage is and what it is.
    fn described(self, state: &State) -> Salvaged {
        match self {
            Self::Pickle(error) => Salvaged { offset: error.offset, reason: error.kind.to_string() },
            Self::Shape { at, expected, found } => Salvaged {
                offset: state.offset(),
                reason: format!("{at}: expected {expected}, found {found}"),
            },
            Self::Other(error) => Salvaged { offset: state.offset(), reason: error.to_string() },
        }
    }
}

impl Import<'_> {
    /// Whether anything was read that is worth keeping.
    pub(super) fn has_rows(&self) -> bool {
        self.segments.read > 0 || self.lists.has_events()
    }

    /// Notes the damage, and returns it with what is known of the top level.
    pub(super) fn salvage(
        &mut self,
        state: &State,
        fault: Fault,
        layers: &[&'static str],
    ) -> Result<(Top, Salvaged), Fault> {
        let salvaged = fault.described(state);
        let doc = match layers.last() {
            Some(layer) => note::SALVAGED_WITHIN.filled(&[layer, &salvaged.reason]),
            None => note::SALVAGED.filled(&[&salvaged.reason]),
        };
        let offset = i64::try_from(salvaged.offset).unwrap_or(i64::MAX);
        self.stats.add(Severity::DataLoss, "salvaged_to_byte", None, offset, doc);
        let doc = "blocks of a segment that was not complete; they are lost with it";
        self.stats.add(Severity::DataLoss, "salvage_blocks_lost", None, self.segments.drop_open(), doc);
        Ok((self.top_so_far(state)?, salvaged))
    }

    fn top_so_far(&mut self, state: &State) -> Result<Top, Fault> {
        let mut top = Top::default();
        let mut items = Vec::new();
        match state.at(0) {
            Some(Value::EmptyList | Value::TakenList { kind: SEGMENT, .. }) | None => {
                top.keys = TopKeys { is_list: true, ..TopKeys::default() };
                return Ok(top);
            }
            Some(Value::OpenDict(node) | Value::Node(node)) => match state.tree().get(node) {
                Some((NodeKind::Dict, known)) => items.extend_from_slice(known),
                Some((NodeKind::List | NodeKind::Tuple, _)) | None => {}
            },
            Some(_) => {}
        }
        let behind = if state.at(1) == Some(Value::Mark) { 2 } else { 1 };
        items.extend(state.stack().iter().skip(behind).map(|slot| slot.value));
        for pair in items.chunks(2) {
            // Behind the last whole pair stand containers that are not complete.
            let [Value::Text(word), rest @ ..] = pair else { break };
            match (*word, rest) {
                (words::DEVICE_TRACES, _) => top.trace_lists = Some(self.lists.device_count()),
                (words::HOST_SEGMENTS | words::HOST_TRACES, _) => top.keys.host = true,
                (words::EXTERNAL_ANNOTATIONS, _) => top.keys.annotations = true,
                (words::ALLOCATOR_SETTINGS, [value @ Value::Node(_)]) => {
                    self.read_settings(state, *value, &mut top)?;
                }
                (words::TRACE_ALLOC_MAX_ENTRIES | words::TRACE_ALLOC_OVERFLOWED, [value]) => {
                    self.read_overflow(state, *word, *value);
                }
                _ => {}
            }
        }
        Ok(top)
    }
}
