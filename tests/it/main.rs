//! The one integration test binary: each further one would link DataFusion again.

mod catalog;
mod ingest;
mod layers;
mod oracle;
mod query;
mod slt;
mod store;
