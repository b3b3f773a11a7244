//! Every encoding of a snapshot gives the same rows, and every form of it is read for what it is.

mod both_ways;
mod encodings;
mod fields;
mod forms;
mod refusals;
