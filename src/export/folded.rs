//! Folded stacks, as flame graph tools read them: `outermost;…;innermost bytes`, below a frame for the device.

use std::io::Write;

use super::stacks::Stacks;
use super::weights::weigh;
use super::{Request, Summary, device_name, label, output};
use crate::analysis::Device;
use crate::engine::Engine;
use crate::error::Result;

/// What stands where no stack was recorded.
pub(super) const NO_STACK: &str = "no call stack recorded";

/// Writes a line per stack.
pub(super) fn write(
    engine: &Engine,
    devices: &[Device],
    request: &Request,
    out: &mut dyn Write,
) -> Result<Summary> {
    let stacks = Stacks::read(engine, &request.redaction)?;
    let mut summary = Summary::default();
    let mut lines = 0;
    for weighed in weigh(engine, devices, request)? {
        let device = device_name(weighed.device_index);
        for (id, bytes) in weighed.stacks {
            let mut line = device.clone();
            let frames = stacks.of(id);
            for frame in frames.iter().rev().filter_map(|number| stacks.frame(*number)) {
                line.push(';');
                line.push_str(&label::folded(frame));
            }
            if frames.is_empty() {
                line.push(';');
                line.push_str(NO_STACK);
            }
            writeln!(out, "{line} {bytes}").map_err(output)?;
            lines += 1;
        }
    }
    summary.count(lines, "stacks");
    Ok(summary)
}
