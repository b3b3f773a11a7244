//! What a snapshot is wrapped in, told by first bytes: gzip, zstd, an HTML page; inside is a pickle or JSON.
//!
//! Every layer is a reader around the one outside it, so that nothing is ever unpacked as a whole: neither memory nor disk
//! grows with what a small file claims to be.

mod html;

use std::fmt;
use std::io::{self, BufReader, Read};

use flate2::read::MultiGzDecoder;

use self::html::Embedded;
use crate::pickle::PickleErrorKind;

/// Bytes looked at to tell a layer.
const HEAD: usize = 64;

/// Bytes a layer reads at once from the one outside it.
const BUFFER: usize = 1 << 17;

/// Layers around a snapshot. A page in a compressed file has two; a file that is nothing but layers ends here.
const MOST_LAYERS: usize = 4;

/// What is inside all layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Whatever is not JSON; the machine says if it is no pickle.
    Pickle,
    /// JSON text.
    Json,
}

/// A snapshot without its layers.
pub(super) struct Opened<'a> {
    /// The innermost bytes.
    pub(super) input: Box<dyn Read + 'a>,
    /// What they are.
    pub(super) form: Form,
    /// Names of the layers, outermost first.
    pub(super) layers: Vec<&'static str>,
    /// Whether the bytes begin as only PyTorch's C++ pickler begins: it marks before it memoizes.
    pub(super) is_from_cpp: bool,
}

impl Opened<'_> {
    /// The form and the layers, from inside to outside: `pickle`, `json+gzip`, `pickle+html+zstd`.
    pub(super) fn name(&self) -> String {
        let form = match self.form {
            Form::Pickle => "pickle",
            Form::Json => "json",
        };
        self.layers.iter().rev().fold(form.to_owned(), |name, layer| name + "+" + layer)
    }
}

/// What the first bytes are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gzip,
    Zstd,
    Html,
    Form(Form),
}

impl Kind {
    fn of(head: &[u8]) -> Self {
        // No opcode that can begin a pickle is one of `{`, `[` and `<`.
        let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start();
        match (head, text) {
            ([0x1f, 0x8b, ..], _) => Self::Gzip,
            // A frame, or one of those that tools may put before it.
            ([0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..], _) => Self::Zstd,
            (_, [b'<', ..]) => Self::Html,
            (_, [b'{' | b'[', ..]) => Self::Form(Form::Json),
            _ => Self::Form(Form::Pickle),
        }
    }
}

/// Takes the layers off `input`, one after the other.
///
/// # Errors
/// The input cannot be read, or a layer is damaged from the start; see [`explained`].
pub(super) fn open<'a>(input: impl Read + 'a) -> io::Result<Opened<'a>> {
    let mut input: Box<dyn Read + 'a> = Box::new(input);
    let mut layers = Vec::new();
    loop {
        let mut head = Vec::new();
        input.by_ref().take(u64::try_from(HEAD).unwrap_or(u64::MAX)).read_to_end(&mut head)?;
        let kind = Kind::of(&head);
        let is_from_cpp = head.starts_with(&[0x80, 2, b'}', b'(']);
        let whole = io::Cursor::new(head).chain(input);
        let buffered = |whole| BufReader::with_capacity(BUFFER, whole);
        (input, layers) = match kind {
            Kind::Form(form) => return Ok(Opened { input: Box::new(whole), form, layers, is_from_cpp }),
            Kind::Gzip => (Layer::boxed("gzip", MultiGzDecoder::new(buffered(whole))), with(layers, "gzip")?),
            Kind::Zstd => {
                let decoder = zstd::Decoder::new(whole).map_err(|error| Damage::in_layer("zstd", error))?;
                (Layer::boxed("zstd", decoder), with(layers, "zstd")?)
            }
            Kind::Html => {
                let found =
                    Embedded::find(buffered(whole)).map_err(|error| Damage::in_layer("html", error))?;
                (Layer::boxed("html", found), with(layers, "html")?)
            }
        };
    }
}

fn with(mut layers: Vec<&'static str>, layer: &'static str) -> io::Result<Vec<&'static str>> {
    if layers.len() >= MOST_LAYERS {
        let reason = format!("the file is wrapped more than {MOST_LAYERS} times");
        return Err(Damage::in_layer(layer, io::Error::new(NOTHING_INSIDE, reason)));
    }
    layers.push(layer);
    Ok(layers)
}

/// The kind of error of a layer that is whole and holds no snapshot.
const NOTHING_INSIDE: io::ErrorKind = io::ErrorKind::NotFound;

/// What a layer's decoder could not read.
#[derive(Debug)]
struct Damage {
    layer: &'static str,
    reason: String,
}

impl Damage {
    /// Wraps a decoder's error; those of the system and of layers outside it pass unchanged.
    fn in_layer(layer: &'static str, error: io::Error) -> io::Error {
        let passes = error.raw_os_error().is_some()
            || error.kind() == io::ErrorKind::Interrupted
            || error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Self>);
        if passes {
            return error;
        }
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it ends too early".to_owned(),
            _ => error.to_string(),
        };
        io::Error::new(error.kind(), Self { layer, reason })
    }
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.layer, self.reason)
    }
}

impl std::error::Error for Damage {}

/// The kind of error that damage to a layer is; what the system says stays what it is.
pub(super) fn explained(error: io::Error) -> PickleErrorKind {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<Damage>()) {
        Some(Damage { reason, .. }) if error.kind() == NOTHING_INSIDE => {
            PickleErrorKind::NothingInside(reason.clone())
        }
        Some(Damage { layer, reason }) => {
            PickleErrorKind::Container { container: layer, reason: reason.clone() }
        }
        None => PickleErrorKind::Io(error),
    }
}

/// A decoder whose errors say which layer they are of.
struct Layer<R> {
    name: &'static str,
    decoder: R,
}

impl<R: Read> Layer<R> {
    fn boxed<'a>(name: &'static str, decoder: R) -> Box<dyn Read + 'a>
    where
        R: 'a,
    {
        Box::new(Self { name, decoder })
    }
}

impl<R: Read> Read for Layer<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.decoder.read(buffer).map_err(|error| Damage::in_layer(self.name, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_told_by_their_first_bytes() {
        for (head, kind) in [
            (b"\x1f\x8b\x08\0".as_slice(), Kind::Gzip),
            (b"\x28\xb5\x2f\xfd\0", Kind::Zstd),
            (b"\x50\x2a\x4d\x18\0", Kind::Zstd),
            (b"\n<!DOCTYPE html>", Kind::Html),
            (b" {\"segments\"", Kind::Form(Form::Json)),
            (b"\xef\xbb\xbf[", Kind::Form(Form::Json)),
            (b"\x80\x04\x95", Kind::Form(Form::Pickle)),
            (b"(dp0\n", Kind::Form(Form::Pickle)),
            (b"", Kind::Form(Form::Pickle)),
        ] {
            assert_eq!(Kind::of(head), kind, "{head:?}");
        }
    }

    #[test]
    fn a_file_that_is_nothing_but_layers_ends() {
        let mut bytes = b"\x80\x02}.".to_vec();
        for _ in 0..=MOST_LAYERS {
            bytes = zstd::encode_all(bytes.as_slice(), 1).unwrap();
        }
        let error = open(bytes.as_slice()).err().unwrap();
        assert!(error.to_string().contains("more than 4 times"), "{error}");
    }
}
