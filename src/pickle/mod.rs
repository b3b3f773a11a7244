//! Untrusted bytes become a stream of closed dicts and lists. Knows nothing of PyTorch.
//!
//! The machine executes nothing: an opcode that would import, call or build something is refused by name. Whatever a
//! hostile file controls (lengths, memo indexes, depth, the stack) is bounded by what the file really holds or by
//! [`Limits`].

#![warn(clippy::indexing_slicing, clippy::as_conversions, clippy::string_slice)]

mod containers;
mod error;
mod intern;
mod json;
mod machine;
mod memo;
mod number;
mod opcode;
mod pairs;
mod rare;
mod reader;
mod state;
#[cfg(test)]
mod tests;
mod text;
mod tree;
mod value;
pub mod writer;

pub(crate) use intern::Interner;

pub use error::{Lookalike, PickleError, PickleErrorKind};
pub use json::JsonMachine;
pub use machine::{Ahead, End, Machine, Sink};
pub use memo::{Entry, Memo};
pub use state::State;
pub use tree::{NodeKind, Tree};
pub use value::{KEPT_KINDS, Slot, Value};

/// Bounds on what a file can make the machine hold. The defaults are far above what any snapshot needs.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Values on the stack. Rows leave it at once, so even a list of a hundred million of them needs two.
    pub stack: usize,
    /// Levels of nesting in what is kept.
    pub depth: u32,
    /// Values in all that is kept of containers nobody takes.
    pub tree_values: usize,
    /// Bytes of one string.
    pub text_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { stack: 1 << 22, depth: 100, tree_values: 1 << 20, text_bytes: 1 << 26 }
    }
}
