//! Results become bytes on a stream: text and tables for people, JSON and CSV for programs.

mod envelope;
mod findings;
mod redact;
mod rows;
mod sink;
mod table;
mod text;

pub use envelope::{envelope, info_envelope};
pub use findings::findings_batch;
pub use redact::{RedactingWriter, Redaction};
pub use rows::{Format, RowWriter};
pub use sink::Sink;
pub use text::{Page, write_page};
