//! Measured values with their units.

use serde_json::{Value, json};

use crate::quantity;

/// A measured value with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Quantity {
    /// Bytes; `None` is not known, which is not zero.
    Bytes(Option<i64>),
    /// How many.
    Count(i64),
    /// A share of one; `None` where it is not defined.
    Ratio(Option<f64>),
}

/// Bytes that are known.
pub(in crate::analysis) fn bytes(value: i64) -> Quantity {
    Quantity::Bytes(Some(value))
}

/// A share of a whole; `None` where there is no whole.
#[expect(clippy::cast_precision_loss, clippy::as_conversions, reason = "a share needs no more than 53 bits")]
#[must_use]
pub fn share(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

impl Quantity {
    /// The raw value for programs.
    #[must_use]
    pub fn json(self) -> Value {
        match self {
            Self::Bytes(value) => json!(value),
            Self::Count(value) => json!(value),
            Self::Ratio(value) => json!(value),
        }
    }

    /// The value for people.
    #[must_use]
    pub fn text(self) -> String {
        match self {
            Self::Bytes(value) => value.map_or_else(|| "-".to_owned(), quantity::bytes),
            Self::Count(value) => quantity::count(value),
            Self::Ratio(value) => quantity::ratio(value),
        }
    }
}
