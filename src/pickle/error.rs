//! Why a pickle cannot be read. Every error carries the offset of the byte it happened at.

use std::fmt;
use std::io;

/// Why a pickle cannot be read, with the byte it happened at.
#[derive(Debug, thiserror::Error)]
#[error("at byte {offset}: {kind}")]
pub struct PickleError {
    /// Byte offset in the (decompressed) input: where the opcode at fault begins.
    pub offset: u64,
    /// What is wrong there.
    pub kind: PickleErrorKind,
}

/// What is wrong with a pickle.
#[derive(Debug, thiserror::Error)]
pub enum PickleErrorKind {
    /// There is not one byte.
    #[error("the file is empty")]
    Empty,
    /// The first bytes are those of something else.
    #[error("this is not a pickle: it looks like {0}")]
    NotAPickle(Lookalike),
    /// A protocol that did not exist when this was written.
    #[error("pickle protocol {0} is not known; 0 to 5 are")]
    Protocol(u8),
    /// The file ends before the pickle does.
    #[error("the file ends in the middle of {inside}")]
    Truncated {
        /// What was being read.
        inside: &'static str,
    },
    /// A length that goes beyond the end of the file.
    #[error("{inside} claims {claimed} bytes, but only {remaining} are left in the file")]
    BeyondEnd {
        /// What was being read.
        inside: &'static str,
        /// Bytes it claims.
        claimed: u64,
        /// Bytes there are.
        remaining: u64,
    },
    /// An opcode that would import, call or build something.
    #[error("refused opcode {opcode}{}", named(.what.as_deref()))]
    Refused {
        /// Its name in Python's `pickletools`.
        opcode: &'static str,
        /// What it would have imported.
        what: Option<String>,
    },
    /// A byte that is no opcode.
    #[error("byte 0x{0:02x} is no pickle opcode")]
    UnknownOpcode(u8),
    /// A reference to an object that was never stored.
    #[error("reference to memo entry {0}, which was never stored")]
    MissingMemo(u64),
    /// A reference to an object whose rows are already written.
    #[error("reference to memo entry {0}, whose content was already handed on")]
    TakenMemo(u64),
    /// An opcode needs more values than there are.
    #[error("{opcode} needs a value, but the stack is empty")]
    StackUnderflow {
        /// Name of the opcode.
        opcode: &'static str,
    },
    /// An opcode needs a MARK and there is none, or found one in its way.
    #[error("{opcode}: {problem}")]
    Mark {
        /// Name of the opcode.
        opcode: &'static str,
        /// What is the matter with the MARK.
        problem: &'static str,
    },
    /// An opcode was applied to a value it cannot be applied to.
    #[error("{opcode} cannot be applied to {found}")]
    WrongTarget {
        /// Name of the opcode.
        opcode: &'static str,
        /// What it was applied to.
        found: &'static str,
    },
    /// An integer of more than 64 bits.
    #[error("an integer of more than 64 bits")]
    IntegerTooLarge,
    /// A text opcode whose argument is malformed.
    #[error("{opcode}: malformed argument {argument:?}")]
    BadText {
        /// Name of the opcode.
        opcode: &'static str,
        /// Its argument, shortened.
        argument: String,
    },
    /// A container was changed after something else took it: it contains itself, or was written by no pickler.
    #[error("a container is changed after another one took it (it refers to itself)")]
    SelfReference,
    /// More than a snapshot ever needs of something that costs memory.
    #[error("more than {limit} {of}")]
    LimitExceeded {
        /// Of what.
        of: &'static str,
        /// How many are allowed.
        limit: u64,
    },
    /// STOP came while containers were still open, or with nothing to return.
    #[error("STOP with {0} values on the stack instead of one")]
    UnfinishedStop(u64),
    /// Text that is no JSON.
    #[error("malformed JSON: {0}")]
    MalformedJson(&'static str),
    /// What the snapshot is wrapped in is damaged.
    #[error("the {container} data is cut short or damaged: {reason}")]
    Container {
        /// `gzip`, `zstd` or `html`.
        container: &'static str,
        /// What its decoder says.
        reason: String,
    },
    /// What the file is wrapped in is whole, and there is no snapshot in it.
    #[error("{0}")]
    NothingInside(String),
    /// The system could not give the bytes.
    #[error("cannot be read")]
    Io(#[source] io::Error),
}

fn named(what: Option<&str>) -> String {
    what.map_or_else(String::new, |what| format!(" ({what})"))
}

/// What a file is that is no pickle, by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookalike {
    /// Compressed with gzip.
    Gzip,
    /// Compressed with Zstandard.
    Zstd,
    /// A zip archive: `torch.save` writes those.
    Zip,
    /// JSON text.
    Json,
    /// An HTML page.
    Html,
    /// A SQLite database.
    Sqlite,
    /// A Parquet file.
    Parquet,
    /// Some other text.
    Text,
    /// Something unknown.
    Binary,
}

impl Lookalike {
    /// Looks at the first bytes of a file that cannot be read as a pickle.
    #[must_use]
    pub fn of(head: &[u8]) -> Self {
        let magics: [(&[u8], Self); 6] = [
            (b"\x1f\x8b", Self::Gzip),
            (b"\x28\xb5\x2f\xfd", Self::Zstd),
            (b"PK\x03\x04", Self::Zip),
            (b"SQLite format 3\0", Self::Sqlite),
            (b"PAR1", Self::Parquet),
            (b"\xef\xbb\xbf", Self::Text),
        ];
        if let Some((_, found)) = magics.iter().find(|(magic, _)| head.starts_with(magic)) {
            return *found;
        }
        let text = head.trim_ascii_start();
        match text.first() {
            Some(b'{' | b'[') => Self::Json,
            Some(b'<') => Self::Html,
            _ if is_text(head) => Self::Text,
            _ => Self::Binary,
        }
    }

    /// Whether no pickle begins like this, so that the file need not be tried as one.
    #[must_use]
    pub fn is_certain(self) -> bool {
        !matches!(self, Self::Text | Self::Binary)
    }
}

/// Whether the bytes are printable text.
pub(crate) fn is_text(bytes: &[u8]) -> bool {
    !bytes.is_empty()
        && bytes.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~') || *byte >= 0x80)
}

impl fmt::Display for Lookalike {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gzip => "a gzip file",
            Self::Zstd => "a zstd file",
            Self::Zip => "a zip archive, such as `torch.save` writes",
            Self::Json => "JSON",
            Self::Html => "an HTML page",
            Self::Sqlite => "a SQLite database",
            Self::Parquet => "a Parquet file",
            Self::Text => "text",
            Self::Binary => "other binary data",
        })
    }
}

impl PickleError {
    /// What to do next, where we know it.
    #[must_use]
    pub fn hint(&self) -> Option<&'static str> {
        match &self.kind {
            PickleErrorKind::Empty => Some(
                "the process that wrote it probably died while it looked up the call stacks; take the snapshot again",
            ),
            PickleErrorKind::NotAPickle(Lookalike::Zip) => Some(
                "a snapshot is written by `_dump_snapshot()`, not by `torch.save`; unpack a zipped snapshot first",
            ),
            PickleErrorKind::NotAPickle(_) | PickleErrorKind::Protocol(_) => Some(
                "a snapshot is the file that `torch_npu.npu.memory._dump_snapshot()` or \
                 `torch.cuda.memory._dump_snapshot()` writes",
            ),
            PickleErrorKind::Truncated { .. } | PickleErrorKind::BeyondEnd { .. } => Some(
                "the file was cut short: copy it again, or take the snapshot again with enough free disk space; \
                 `npusnap ingest --salvage` keeps what stands before the cut",
            ),
            PickleErrorKind::Refused { .. } => Some(
                "a memory snapshot holds only numbers, text, lists and dicts; a pickle that imports or calls \
                 something is another kind of file, or not to be trusted",
            ),
            PickleErrorKind::UnknownOpcode(_)
            | PickleErrorKind::MissingMemo(_)
            | PickleErrorKind::StackUnderflow { .. }
            | PickleErrorKind::Mark { .. }
            | PickleErrorKind::WrongTarget { .. }
            | PickleErrorKind::BadText { .. }
            | PickleErrorKind::MalformedJson(_)
            | PickleErrorKind::Container { .. }
            | PickleErrorKind::UnfinishedStop(_) => Some(
                "the file is damaged: copy it again in binary mode, or take the snapshot again; \
                 `npusnap ingest --salvage` keeps what stands before the damage",
            ),
            PickleErrorKind::TakenMemo(_) | PickleErrorKind::SelfReference => Some(
                "no PyTorch writes this; if a script changed the snapshot, let it copy objects instead of sharing them",
            ),
            PickleErrorKind::IntegerTooLarge | PickleErrorKind::LimitExceeded { .. } => {
                Some("no PyTorch writes this: the file is damaged, or no memory snapshot")
            }
            PickleErrorKind::NothingInside(_) => Some("give the snapshot file itself"),
            PickleErrorKind::Io(_) => None,
        }
    }
}
