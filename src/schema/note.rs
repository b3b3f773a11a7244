//! What the rows of `import_stats` say in `doc` where one name has several texts, or a text has numbers in it. The import
//! fills them in; who says a row in another language reads them back.

use std::fmt::Display;

/// A text with `{}` for each value in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Template(pub(crate) &'static str);

impl Template {
    /// The text with these values.
    pub(crate) fn filled(self, values: &[&dyn Display]) -> String {
        let mut parts = self.0.split("{}");
        let mut text = parts.next().unwrap_or_default().to_owned();
        for (value, part) in values.iter().zip(parts) {
            text.push_str(&value.to_string());
            text.push_str(part);
        }
        text
    }

    /// The values in a text that was filled in; `None` for another text.
    pub(crate) fn values(self, text: &str) -> Option<Vec<&str>> {
        let Some((first, others)) = self.0.split_once("{}") else {
            return (text == self.0).then(Vec::new);
        };
        let mut rest = text.strip_prefix(first)?;
        let mut values = Vec::new();
        let mut parts = others.split("{}").peekable();
        while let Some(part) = parts.next() {
            // What stands at the end may stand in the last value as well.
            let at = if parts.peek().is_none() {
                rest.len().checked_sub(part.len()).filter(|_| rest.ends_with(part))?
            } else {
                rest.find(part)?
            };
            values.push(rest.get(..at)?);
            rest = rest.get(at + part.len()..)?;
        }
        Some(values)
    }
}

pub(crate) const SALVAGED: Template =
    Template("byte where the file is damaged: {}; what stood behind it is lost");
pub(crate) const SALVAGED_WITHIN: Template = Template(
    "byte (bytes are counted in what the {} container holds) where the file is damaged: {}; what stood behind it is lost",
);
pub(crate) const NO_DEVICE_TRACES: Template =
    Template("the snapshot has no device_traces: there is the final state only, and no history");
pub(crate) const DEVICE_TRACES_LOST: Template = Template(
    "no device_traces stand before the damage: there is the final state only, as far as it was read, and whether a history \
     was recorded is not known",
);
pub(crate) const WORKSPACE_GUESS: Template = Template(
    "bytes in segments that look like workspace (at the end, out of address order, one inactive block); without a history \
     nothing says so, and they are counted as reserved",
);
pub(crate) const WORKSPACE_GUESS_OF_REST: Template = Template(
    "bytes in segments that look like workspace (out of address order, one inactive block); the history that would say so \
     is not before the damage, and they are counted as reserved",
);

/// Events that are missing, with what that does to the counters.
macro_rules! gap {
    ($doc:literal) => {
        Template(concat!(
            $doc,
            "; they add {} bytes to the residual of allocated_requested and {} to that of active_requested"
        ))
    };
}

pub(crate) const ALLOCATIONS_WITHOUT_END: Template =
    gap!("allocations that are never freed in the trace and are not in the segments");
pub(crate) const FREES_WITHOUT_COMPLETION: Template =
    gap!("frees that were requested and not completed, of blocks that are not active in the segments");
pub(crate) const COMPLETIONS_WITHOUT_REQUEST: Template =
    gap!("frees that were completed without having been requested");
pub(crate) const FREES_WITHOUT_ALLOC: Template = gap!(
    "frees of addresses that were free already: the alloc between is missing, and alloc_index is that of the free before"
);
pub(crate) const BLOCKS_WITHOUT_ALLOC: Template = gap!(
    "blocks that are active in the segments although the trace freed them last: alloc_index is that of the free"
);
pub(crate) const ALLOCS_ON_LIVE_ADDRESSES: Template = Template(
    "of those in allocations_without_end, allocations of {} bytes whose address was used again: their frees are missing, \
     and the free indices are those of the next event there",
);
pub(crate) const PENDING_SHOWN_INACTIVE: Template = Template(
    "blocks that wait for a free and are shown as inactive, as torch_npu does while a graph is captured; final counts their \
     {} bytes as active",
);
pub(crate) const BLOCK_SIZES_UNPROVEN: Template = Template(
    "allocations of {} whose block size is not proven ({} of {} bytes); rounded counters are not exact",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_filled_in_is_read_back() {
        let text = BLOCK_SIZES_UNPROVEN.filled(&[&7, &512_i128, &"1024"]);
        assert_eq!(
            text,
            "allocations of 7 whose block size is not proven (512 of 1024 bytes); rounded counters are not exact"
        );
        assert_eq!(BLOCK_SIZES_UNPROVEN.values(&text).unwrap(), ["7", "512", "1024"]);
        assert_eq!(ALLOCS_ON_LIVE_ADDRESSES.values(&text), None);
        let reason = "more; what stood behind it is lost";
        assert_eq!(SALVAGED.values(&SALVAGED.filled(&[&reason])).unwrap(), [reason]);
        assert_eq!(
            SALVAGED_WITHIN.values(&SALVAGED_WITHIN.filled(&[&"gzip", &reason])).unwrap(),
            ["gzip", reason]
        );
        assert_eq!(SALVAGED.values("byte where the file is damaged"), None);
        assert_eq!(NO_DEVICE_TRACES.values(NO_DEVICE_TRACES.0).unwrap(), [""; 0]);
        assert_eq!(NO_DEVICE_TRACES.values(DEVICE_TRACES_LOST.0), None);
    }
}
