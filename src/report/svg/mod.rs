//! Charts as still pictures: for print, for readers without scripts, and as files. From the same values as the others.

mod bars;
mod compact;
mod curves;
mod layout;
mod paper;
mod plot;
mod tree;

use crate::analysis::chart::Chart;
use crate::output::Redaction;

pub(super) use paper::Wording;

/// The chart as an SVG document.
pub(super) fn draw(chart: &Chart, wording: Wording, redaction: &Redaction) -> String {
    match chart {
        Chart::Timeline(timeline) => curves::timeline(timeline, wording, redaction),
        Chart::Devices(devices) => bars::devices(devices, wording, redaction),
        Chart::Layout(layout) => layout::draw(layout, wording, redaction),
        Chart::Expansion(expansion) => curves::expansion(expansion, wording, redaction),
        Chart::Stacks(stacks) => bars::stacks(stacks, wording, redaction),
        Chart::Flame(flame) => tree::draw(flame, wording, redaction),
        Chart::Sequence(sequence) => bars::sequence(sequence, wording, redaction),
        Chart::Overlay(overlay) => curves::overlay(overlay, wording, redaction),
    }
}
