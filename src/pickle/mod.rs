//! Untrusted bytes become a stream of closed dicts and lists. Knows nothing of PyTorch.

pub mod writer;

/// Why a pickle cannot be read, with the byte it happened at.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}")]
pub struct PickleError {
    /// Byte offset in the (decompressed) input.
    pub offset: u64,
}

impl PickleError {
    /// What to do next, where we know it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        None
    }
}
