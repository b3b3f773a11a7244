//! What the decoder's tests are built from: a pickle writer of their own, and a sink that keeps the rows.

pub(crate) mod analyze;
pub(crate) mod pickler;
pub(crate) mod pool;
pub(crate) mod rows;
pub(crate) mod snapshots;
