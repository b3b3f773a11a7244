//! The one integration test binary: each further one would link DataFusion again.

mod decode;
mod layers;
mod pickle_robust;
mod support;
