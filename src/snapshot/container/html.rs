//! The snapshot in an HTML page: `_memory_viz.py trace_plot` and `segment_plot` put the pickle as base64 into a string of a
//! script. It is the first string literal that is base64 of something a snapshot can be, whatever stands around it.

use std::io::{self, BufRead, Read};

use super::{Form, Kind, NOTHING_INSIDE};

/// Characters of a literal that are decoded to see what it is: a whole number of base64 groups. The shortest snapshot
/// there is has more.
const SAMPLE: usize = 32;

/// Value of a base64 character; others have [`NONE`].
const VALUES: [u8; 256] = values();
const NONE: u8 = 0xff;

#[expect(
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "evaluated by the compiler, which checks it"
)]
const fn values() -> [u8; 256] {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut values = [NONE; 256];
    let mut value = 0_u8;
    while (value as usize) < alphabet.len() {
        values[alphabet[value as usize] as usize] = value;
        value += 1;
    }
    values
}

fn value_of(byte: u8) -> Option<u32> {
    VALUES.get(usize::from(byte)).copied().filter(|value| *value != NONE).map(u32::from)
}

fn is_quote(byte: u8) -> bool {
    matches!(byte, b'"' | b'\'' | b'`')
}

/// The decoded content of the literal.
pub(super) struct Embedded<R> {
    page: R,
    bits: Bits,
    /// Decoded; the first `taken` bytes are handed out.
    ready: Vec<u8>,
    taken: usize,
    is_done: bool,
}

/// Base64 characters on their way to bytes.
#[derive(Debug, Default)]
struct Bits {
    value: u32,
    characters: u8,
}

impl Bits {
    /// Adds six bits; every fourth time there are three bytes.
    #[inline]
    fn push(&mut self, six: u32) -> Option<[u8; 3]> {
        self.value = self.value << 6 | six;
        self.characters += 1;
        if self.characters < 4 {
            return None;
        }
        let [_, first, second, third] = self.value.to_be_bytes();
        *self = Self::default();
        Some([first, second, third])
    }

    /// The bytes of a last group that is not full.
    fn finish(&mut self) -> io::Result<Vec<u8>> {
        let [_, first, second, _] = (self.value << (6 * (4 - u32::from(self.characters) % 4))).to_be_bytes();
        let bytes = match self.characters {
            0 => vec![],
            2 => vec![first],
            3 => vec![first, second],
            _ => return Err(damaged("the base64 in it has one character too many or too few")),
        };
        *self = Self::default();
        Ok(bytes)
    }
}

fn damaged(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

fn can_be_snapshot(sample: &[u8]) -> bool {
    match Kind::of(sample) {
        Kind::Form(Form::Pickle) => matches!(sample, [0x80, 0..=5, ..]),
        Kind::Html => false,
        Kind::Gzip | Kind::Zstd | Kind::Form(Form::Json) => true,
    }
}

impl<R: BufRead> Embedded<R> {
    /// Finds the snapshot in `page`.
    pub(super) fn find(mut page: R) -> io::Result<Self> {
        // The beginning of a literal that may be it; `None` outside one.
        let mut literal: Option<Vec<u8>> = None;
        loop {
            let chunk = page.fill_buf()?;
            if chunk.is_empty() {
                return Err(io::Error::new(
                    NOTHING_INSIDE,
                    "there is no snapshot in the page; those that `_memory_viz.py trace_plot` and `segment_plot` \
                     write have one, as base64",
                ));
            }
            let mut read = 0;
            for byte in chunk {
                read += 1;
                if is_quote(*byte) {
                    literal = Some(Vec::with_capacity(SAMPLE));
                    continue;
                }
                let Some(sample) = &mut literal else { continue };
                if value_of(*byte).is_none() {
                    literal = None;
                    continue;
                }
                sample.push(*byte);
                if sample.len() == SAMPLE {
                    let mut bits = Bits::default();
                    let values = sample.iter().filter_map(|byte| value_of(*byte));
                    let ready: Vec<u8> = values.filter_map(|six| bits.push(six)).flatten().collect();
                    if can_be_snapshot(&ready) {
                        page.consume(read);
                        return Ok(Self { page, bits, ready, taken: 0, is_done: false });
                    }
                    literal = None;
                }
            }
            page.consume(read);
        }
    }

    /// Decodes what the page has at hand.
    fn refill(&mut self) -> io::Result<()> {
        self.ready.clear();
        self.taken = 0;
        while self.ready.is_empty() && !self.is_done {
            let chunk = self.page.fill_buf()?;
            if chunk.is_empty() {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
            let mut read = 0;
            for byte in chunk {
                read += 1;
                match value_of(*byte) {
                    Some(six) => self.ready.extend(self.bits.push(six).into_iter().flatten()),
                    None if *byte == b'=' || is_quote(*byte) => {
                        self.is_done = true;
                        self.ready.extend(self.bits.finish()?);
                        break;
                    }
                    None => return Err(damaged("its base64 has a character that does not belong there")),
                }
            }
            self.page.consume(read);
        }
        Ok(())
    }
}

impl<R: BufRead> Read for Embedded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.taken == self.ready.len() {
            self.refill()?;
        }
        let rest = self.ready.get(self.taken..).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(rest) {
            *place = *byte;
        }
        self.taken += count;
        Ok(count)
    }
}
