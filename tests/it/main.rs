//! The one integration test binary: each further one would link DataFusion again.

mod ingest;
mod layers;
mod slt;
mod store;
