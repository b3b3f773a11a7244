//! Bytes by call stack: what was live at the end, what was live at the peak, or what was ever allocated.

use std::collections::BTreeMap;

use super::rows::{Allocation, Moment};
use super::{Request, device_name};
use crate::analysis::Device;
use crate::engine::{Engine, Value};
use crate::error::Result;

/// Which bytes a stack is weighed by; sizes of blocks, rounding included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Weight {
    /// Allocated and not freed after the last event.
    #[default]
    Live,
    /// Allocated and not freed at the moment when most bytes were.
    Peak,
    /// Allocated at any time in the window, freed or not.
    Allocated,
}

/// The stacks of one device.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) device_index: i64,
    /// What the bytes are, for the title of a profile.
    pub(super) title: String,
    /// Bytes by `call_stacks.id`, most first; `None` for allocations without one.
    pub(super) stacks: Vec<(Option<i64>, i64)>,
}

/// Weighs the stacks of every device.
pub(super) fn weigh(engine: &Engine, devices: &[Device], request: &Request) -> Result<Vec<Weighed>> {
    let mut weighed = Vec::with_capacity(devices.len());
    for device in devices {
        let (end, moment) = match request.weight {
            Weight::Live | Weight::Allocated => (request.events.end(), String::new()),
            Weight::Peak => {
                let peak = peak(engine, device, request)?;
                let place = peak.map_or_else(String::new, |index| format!(" (event {index})"));
                (peak.map_or(request.events.end(), |index| index.saturating_add(1)), place)
            }
        };
        let mut bytes: BTreeMap<Option<i64>, i64> = BTreeMap::new();
        for allocation in engine.scan::<Allocation>(&[("device_id", device.id..=device.id)])? {
            let allocation = allocation?;
            let counts = match request.weight {
                Weight::Allocated => {
                    allocation.alloc_index.is_some_and(|index| request.events.contains(index))
                }
                Weight::Live | Weight::Peak => allocation.is_active_at(end) && !allocation.is_pending_at(end),
            };
            if counts {
                let sum = bytes.entry(allocation.stack_id).or_default();
                *sum = sum.saturating_add(allocation.bytes());
            }
        }
        let mut stacks: Vec<(Option<i64>, i64)> = bytes.into_iter().collect();
        stacks.sort_by_key(|(id, bytes)| (std::cmp::Reverse(*bytes), *id));
        let kind = match request.weight {
            Weight::Live => "live bytes",
            Weight::Peak => "bytes at the peak",
            Weight::Allocated => "allocated bytes",
        };
        let title = format!("{}: {kind}{moment}", device_name(device.device_index));
        weighed.push(Weighed { device_index: device.device_index, title, stacks });
    }
    Ok(weighed)
}

/// The event in the window after which the allocated bytes are most, the first of several; none without a curve.
fn peak(engine: &Engine, device: &Device, request: &Request) -> Result<Option<i64>> {
    let params = [
        ("device", Value::Integer(device.device_index)),
        ("first", Value::Integer(request.events.first())),
        ("last", Value::Integer(request.events.end().saturating_sub(1))),
    ];
    let mut peak: Option<(i64, i64)> = None;
    for moment in engine.stream::<Moment>(&params)? {
        let moment = moment?;
        if let Some(allocated) = moment.allocated
            && peak.is_none_or(|(most, _)| allocated > most)
        {
            peak = Some((allocated, moment.trace_index));
        }
    }
    Ok(peak.map(|(_, index)| index))
}
