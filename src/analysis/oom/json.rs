//! A failure as JSON. What was not looked into is null: an empty list says that there was nothing.

use serde_json::{Value, json};

use super::{Event, Failure, LastEvent, OomGrowth};
use crate::analysis::frames::{frames, place};
use crate::analysis::language::Lang;
use crate::quantity;

impl Failure {
    /// The failure as an object of `events`.
    pub(super) fn json(&self, lang: Lang) -> Value {
        let Event { device_index, trace_index, time_us, state, .. } = &self.event;
        let mut value = json!({
            "device_index": device_index,
            "trace_index": trace_index,
            "is_recorded": trace_index.is_some(),
            "time_us": time_us,
            "requested": state.requested,
            "device_free": state.device_free,
            "reserved": state.reserved,
            "allocated": state.allocated,
            "largest_free_block": state.largest_free_block,
            "hole_count": state.hole_count,
            "pending_free_bytes": state.pending_free_bytes,
            "pool_free_bytes": state.pool_free_bytes,
            "other_stream_bytes": state.other_stream_bytes,
            "private_reserved": state.private_reserved,
            "private_free_bytes": state.private_free_bytes,
            "unused_segment_bytes": state.unused_segment_bytes,
            "kind_free_bytes": state.kind_free_bytes,
            "kind_largest_free": state.kind_largest_free,
            "kind_hole_count": state.kind_hole_count,
            "kind_other_bytes": state.kind_other_bytes,
            "kind_private_bytes": state.kind_private_bytes,
            "kind_cut_bytes": state.kind_cut_bytes,
            "kind_pending_bytes": state.kind_pending_bytes,
            "workspace_bytes": state.workspace_bytes,
            "outside_pool_bytes": state.outside_pool_bytes,
            "cause": self.cause.name(),
            "advice": self.advice.iter().map(|text| text.get(lang)).collect::<Vec<_>>(),
            "stack_id": self.event.stack_id,
            "frames": frames(self.event.frames_json.as_deref()),
            "grew_last": self.event.growth.as_ref().map(|rows| rows.iter().map(growth_json).collect::<Vec<_>>()),
            "preceding": self.event.preceding.as_ref().map(|rows| preceding(rows, lang)),
        });
        if let Some(object) = value.as_object_mut() {
            let pool = state.pool.map(|(first, second)| json!([first, second]));
            object.insert("pool_id".to_owned(), pool.unwrap_or_default());
            for (name, bytes) in [
                ("largest_usable_block", state.largest_usable_block),
                ("own_free_bytes", state.own_free_bytes),
                ("kind_oversize_bytes", state.kind_oversize_bytes),
            ] {
                object.insert(name.to_owned(), json!(bytes));
            }
            object.extend(self.outside.json().map(|outside| ("outside_pool".to_owned(), outside)));
        }
        value
    }
}

fn growth_json(row: &OomGrowth) -> Value {
    json!({
        "stack_id": row.stack_id,
        "recent_bytes": row.recent_bytes,
        "recent_count": row.recent_count,
        "live_bytes": row.live_bytes,
        "live_count": row.live_count,
        "frames": frames(row.frames_json.as_deref()),
    })
}

fn preceding(rows: &[LastEvent], lang: Lang) -> Vec<Value> {
    rows.iter().map(|row| preceding_json(row, lang)).collect()
}

fn preceding_json(row: &LastEvent, lang: Lang) -> Value {
    json!({
        "trace_index": row.trace_index,
        "time_us": row.time_us,
        "action": row.action,
        "addr": row.addr.map(quantity::address),
        "size": row.size,
        "stream": row.stream,
        "stack_id": row.stack_id,
        "place": row.frames_json.as_deref().map(|json| place(Some(json)).get(lang).to_owned()),
    })
}
