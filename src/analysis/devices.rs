//! The devices an analysis speaks of: those in scope, pinned host memory apart.

use super::Scope;
use crate::engine::{Engine, row};
use crate::error::{Error, Result};

row! {
    /// A device of the snapshot.
    pub struct Device from "devices" {
        /// Row number.
        id: i64,
        /// Device number in the snapshot; -1 is pinned host memory.
        device_index: i64,
    }
}

impl Device {
    /// The devices in scope, by their number; pinned host memory, -1, comes first where there is any.
    ///
    /// # Errors
    /// The table cannot be read, or the device asked for is not in it.
    pub fn in_scope(engine: &Engine, scope: Scope) -> Result<Vec<Self>> {
        let mut devices: Vec<Self> = engine.table_rows()?;
        devices.sort_by_key(|device| device.device_index);
        let Some(wanted) = scope.device else { return Ok(devices) };
        if devices.iter().all(|device| device.device_index != wanted) {
            let known: Vec<String> = devices.iter().map(|device| device.device_index.to_string()).collect();
            let reason = format!("the snapshot has no such device; it has: {}", known.join(", "));
            return Err(Error::Usage { what: format!("--device {wanted}"), reason });
        }
        devices.retain(|device| device.device_index == wanted);
        Ok(devices)
    }
}
