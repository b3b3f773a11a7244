//! The devices an analysis speaks of: those in scope, pinned host memory apart.

use super::Scope;
use crate::engine::{Engine, row};
use crate::error::Result;

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
    pub fn in_scope(engine: &Engine, scope: Scope<'_>) -> Result<Vec<Self>> {
        scope.check_device(engine)?;
        let mut devices: Vec<Self> = engine.table_rows()?;
        devices.sort_by_key(|device| device.device_index);
        devices.retain(|device| scope.device.is_none_or(|wanted| wanted == device.device_index));
        Ok(devices)
    }
}
