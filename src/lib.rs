//! npusnap reads memory snapshots of Ascend NPU and CUDA GPU jobs.
//!
//! # Architecture
//!
//! Layers in one crate; a module may name only modules to its left (`tests/it/layers.rs` checks it):
//!
//! ```text
//! pickle  schema  quantity < error < snapshot < replay < store < engine < analysis < output < export < report < cli
//! ```
//!
//! * [`pickle`](mod@pickle): untrusted bytes become a stream of closed dicts and lists; nothing is ever constructed or executed.
//! * [`schema`](mod@schema): what a snapshot is, declared once: tables, columns, DDL, docs.
//! * [`quantity`](mod@quantity): bytes, counts, ratios and addresses as text, in one place.
//! * [`error`](mod@error): what can go wrong, by what the reader of the message can do about it.
//! * [`snapshot`](mod@snapshot): closed dicts become rows; also the simulator that writes snapshots.
//! * [`replay`](mod@replay): events and final state become lifetimes of allocations, and the base of every curve.
//! * [`store`](mod@store): rows become Parquet and SQLite files, beside the final name and then renamed.
//! * [`engine`](mod@engine): the only module that names DataFusion; SQL over a store, and the SQL macros of `sql/`.
//! * [`analysis`](mod@analysis): small relations become judged, typed results.
//! * [`output`](mod@output): results become text, JSON and CSV.
//! * [`export`](mod@export): a snapshot in the forms that other tools read.
//! * [`report`](mod@report): results become one HTML page.
//! * [`cli`](mod@cli): commands.

pub mod pickle;
#[macro_use]
pub mod schema;
pub mod quantity;

pub mod error;

pub mod snapshot;

pub mod replay;

pub mod store;

pub mod engine;

pub mod analysis;

pub mod output;

pub mod export;

pub mod report;

pub mod cli;
