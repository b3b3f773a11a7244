//! Results become bytes on a stream: text for people, JSON for programs.

mod envelope;
mod text;

pub use envelope::envelope;
pub use text::{Page, write_page};
