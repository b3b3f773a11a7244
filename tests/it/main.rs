//! The one integration test binary: each further one would link DataFusion again.

mod layers;
mod pickle_writer;
mod synth;
