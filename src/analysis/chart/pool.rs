//! Charts of the pool itself: where blocks lie, and how it grew. What is many was joined or left out in SQL.

use super::stacks::words;
use super::{BlockState, Chart, ChartFigure, Expansion, Layout, OtherSegments, PoolEvent, SegmentRow, Span};
use crate::analysis::fragment::DeviceFragmentation;
use crate::analysis::language::Text;
use crate::analysis::outcome::share;
use crate::engine::{Engine, row};
use crate::error::Result;

/// Segments with a row of their own.
const SEGMENTS: i64 = 20;

row! {
    /// Blocks of a segment.
    pub struct LayoutRow from "segment_layout" {
        /// `segments.id`.
        segment_id: i64,
        /// Start address of the segment.
        address: Option<i64>,
        /// Bytes of the segment.
        total_size: i64,
        /// Of them, in allocated blocks.
        allocated_size: i64,
        /// `large` or `small`.
        segment_type: Option<String>,
        /// Stream that owns the segment.
        stream: Option<i64>,
        /// Bytes of the blocks.
        block_size: i64,
        /// How many blocks these are.
        block_count: i64,
        /// State of the blocks.
        state: String,
        /// Call stack; NULL where several blocks are joined.
        stack_id: Option<i64>,
    }
}

row! {
    /// A segment event that stands for a stretch of them.
    pub struct GrowthRow from "pool_growth" {
        /// Position of the event.
        trace_index: i64,
        /// Microseconds since the Unix epoch.
        time_us: Option<i64>,
        /// The allocator's name of the event.
        action: String,
        /// Bytes of the event.
        size: i64,
        /// Bytes since the recording began.
        net_size: i64,
        /// Segments since the recording began.
        net_segments: i64,
        /// Call stack of the event.
        stack_id: Option<i64>,
        /// Segment events of the device.
        event_count: i64,
    }
}

/// Where blocks lie in the segments of a device.
///
/// # Errors
/// The relation failed.
pub fn layout(engine: &Engine, device: &DeviceFragmentation, low_use: f64) -> Result<Option<ChartFigure>> {
    let rows: Vec<LayoutRow> =
        engine.rows(&[("device", device.device_index.into()), ("limit", SEGMENTS.into())])?;
    let mut segments: Vec<SegmentRow> = Vec::new();
    for row in rows {
        if segments.last().is_none_or(|last| last.segment_id != row.segment_id) {
            segments.push(SegmentRow {
                segment_id: row.segment_id,
                address: row.address,
                total_size: row.total_size,
                allocated_size: row.allocated_size,
                is_low_use: share(row.allocated_size, row.total_size).is_some_and(|share| share < low_use),
                segment_type: row.segment_type.unwrap_or_default(),
                stream: row.stream,
                spans: Vec::new(),
            });
        }
        let Some(segment) = segments.last_mut() else { continue };
        // The rows fill the segment in this order; what was joined is drawn as one piece.
        let offset = segment.spans.last().map_or(0, |span| span.offset + span.size);
        segment.spans.push(Span {
            offset,
            size: row.block_size,
            state: BlockState::parse(&row.state),
            block_count: row.block_count,
            stack_id: row.stack_id,
        });
    }
    if segments.is_empty() {
        return Ok(None);
    }
    let shown = |size: fn(&SegmentRow) -> i64| segments.iter().map(size).sum::<i64>();
    let other = OtherSegments {
        count: device.segment_count - i64::try_from(segments.len()).unwrap_or(i64::MAX),
        total_size: device.reserved - shown(|segment| segment.total_size),
        allocated_size: device.allocated - shown(|segment| segment.allocated_size),
    };
    let ids = segments.iter().flat_map(|segment| &segment.spans).filter_map(|span| span.stack_id);
    let stacks = words(engine, ids)?;
    Ok(Some(ChartFigure {
        name: "layout",
        device: Some(device.device_index),
        title: Text::new("Where blocks lie in segments", "段内块的布局"),
        chart: Chart::Layout(Layout { segments, other: Some(other).filter(|other| other.count > 0), stacks }),
    }))
}

/// How the pool of a device grew and shrank.
///
/// # Errors
/// The relation failed.
pub fn expansion(engine: &Engine, device_index: i64) -> Result<Option<ChartFigure>> {
    let rows: Vec<GrowthRow> = engine.rows(&[("device", device_index.into())])?;
    let Some(event_count) = rows.first().map(|row| row.event_count) else { return Ok(None) };
    let stacks = words(engine, rows.iter().filter_map(|row| row.stack_id))?;
    let events = rows
        .into_iter()
        .map(|row| PoolEvent {
            trace_index: row.trace_index,
            time_us: row.time_us,
            change: if matches!(row.action.as_str(), "segment_alloc" | "segment_map") {
                row.size
            } else {
                -row.size
            },
            net_segments: row.net_segments,
            net_size: row.net_size,
            stack_id: row.stack_id,
        })
        .collect();
    Ok(Some(ChartFigure {
        name: "expansion",
        device: Some(device_index),
        title: Text::new("How the pool grew", "内存池扩容过程"),
        chart: Chart::Expansion(Expansion { events, event_count, stacks }),
    }))
}
