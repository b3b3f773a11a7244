//! What part of a snapshot to look at, and with which parameters of its relations.

use super::devices::Device;
use crate::engine::{Engine, Row, Rows, Value, nearest};
use crate::error::{Error, Result};

/// What part of a snapshot to look at.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope<'a> {
    /// Only this device number; all where there is none.
    pub device: Option<i64>,
    /// Values for parameters of the relations, by name: each goes to every relation that has such a parameter.
    pub params: &'a [(String, Value)],
}

/// Parameters that the command line sets in another way.
const TAKEN: &[&str] = &["device", "event"];

impl Scope<'_> {
    /// Whether the snapshot has such a device, and its relations such parameters.
    ///
    /// # Errors
    /// It has not, or the devices cannot be read.
    pub fn check(&self, engine: &Engine, relations: &[&str]) -> Result<()> {
        self.check_device(engine)?;
        let mut known = Vec::new();
        for relation in relations {
            known.extend(engine.parameters(relation)?.iter().map(|param| param.name));
        }
        known.retain(|name| !TAKEN.contains(name));
        match self.params.iter().find(|(name, _)| !known.contains(&name.as_str())) {
            Some((name, _)) => Err(Error::Unknown {
                kind: "parameter",
                name: name.clone(),
                nearest: nearest(name, known.into_iter()),
            }),
            None => Ok(()),
        }
    }

    /// Whether the snapshot has the device asked for.
    ///
    /// # Errors
    /// It has not, or the devices cannot be read.
    pub(super) fn check_device(&self, engine: &Engine) -> Result<()> {
        let Some(wanted) = self.device else { return Ok(()) };
        let mut known: Vec<i64> =
            engine.table_rows::<Device>()?.iter().map(|device| device.device_index).collect();
        if known.contains(&wanted) {
            return Ok(());
        }
        known.sort_unstable();
        let known: Vec<String> = known.iter().map(i64::to_string).collect();
        let reason = format!("the snapshot has no such device; it has: {}", known.join(", "));
        Err(Error::Usage { what: format!("--device {wanted}"), reason })
    }

    /// The relation that `R` reads, as far as it is in scope.
    ///
    /// # Errors
    /// The query fails, or a column is not what `R` says.
    pub fn rows<R: Row>(&self, engine: &Engine) -> Result<Vec<R>> {
        self.relation(engine, R::RELATION)?.read()
    }

    /// A relation, as far as it is in scope.
    ///
    /// # Errors
    /// There is no such relation, or the query fails.
    pub fn relation(&self, engine: &Engine, name: &str) -> Result<Rows> {
        let mut values: Vec<(&str, Value)> = Vec::new();
        for param in engine.parameters(name)? {
            if param.name == "device" {
                values.push(("device", self.device.into()));
            } else if let Some((_, value)) = self.params.iter().find(|(name, _)| name == param.name) {
                values.push((param.name, value.clone()));
            }
        }
        engine.relation(name, &values)
    }
}
