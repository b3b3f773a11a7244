//! The one integration test binary: each further one would link DataFusion again.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stderr,
    reason = "a test that cannot go on fails with what it met, and one that is skipped says so"
)]
#![expect(
    clippy::format_collect,
    clippy::from_iter_instead_of_collect,
    reason = "a test is read for what it says; builders and expected values are written for that"
)]

mod beside;
mod catalog;
mod compare;
mod containers;
mod database;
mod decode;
mod export;
mod fragment;
mod info;
mod ingest;
mod known;
mod layers;
mod leak;
mod modes;
mod notes;
mod oom;
mod oracle;
mod overview;
mod peak;
mod pickle_robust;
mod pickle_writer;
mod prompt;
mod query;
mod relations;
mod replay;
mod report;
mod skill;
mod slt;
mod sources;
mod store;
mod support;
mod synth;
