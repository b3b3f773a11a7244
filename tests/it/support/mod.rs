//! What the decoder's tests are built from: a pickle writer of their own, and a sink that keeps the rows.

pub mod pickler;
pub mod rows;
pub mod snapshots;
