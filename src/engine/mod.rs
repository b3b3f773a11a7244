//! SQL over a store. The only module that names DataFusion.

mod rows;

pub(crate) use rows::row;
pub use rows::{Cell, Row, Rows, cell, check, sql_type};
