//! A mutator that knows where opcodes begin and end. Random bytes break a pickle at the next length; whole opcodes that go,
//! come twice or change their argument leave most of it readable, and that is where two decoders can differ.

use libfuzzer_sys::fuzzer_mutate;

/// Strings that mean something to the reader.
const WORDS: &[&str] = &[
    "action", "addr", "size", "stream", "time_us", "frames", "pool_id", "compile_context", "user_metadata",
    "device_free", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
    "segment_unmap", "snapshot", "oom", "annotate", "workspace_snapshot", "name", "filename", "line", "address",
    "requested_size", "state", "history", "real_size", "inactive", "active_allocated", "active_pending_free",
    "device", "total_size", "allocated_size", "active_size", "segment_type", "segment_pool_id", "is_expandable",
    "blocks", "stage", "segments", "device_traces", "allocator_settings", "external_annotations",
    "host_segments", "host_traces", "trace_alloc_max_entries", "unheard_of", "",
];

/// Opcodes without an argument that containers are made of, and a few values.
const BARE: &[u8] = b"(.012N]})aesutl\x85\x86\x87\x88\x89\x94";

const NUMBERS: &[i64] = &[
    0, 1, -1, 2, 127, 128, 255, 256, 512, 65_535, 65_536, 1 << 31, -(1 << 31), (1 << 31) - 1, 1 << 32, 1 << 40,
    1 << 48, i64::MAX, i64::MIN,
];

/// Xorshift: a libFuzzer seed is enough for one mutation.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 1).unwrap() % sides.max(1)
    }
}

/// Bytes of the opcode that `bytes` starts with, or all of them where it is none or has no end.
fn length(bytes: &[u8]) -> usize {
    let number = |width: usize| {
        let digits = bytes.get(1..=width)?;
        let value = digits.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte));
        usize::try_from(value).ok()?.checked_add(1 + width)
    };
    let lines = |count: usize| {
        let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
        ends.take(count).nth(count - 1)
    };
    let found = match bytes[0] {
        b'K' | b'h' | b'q' | 0x80 | 0x82 => Some(2),
        b'M' | 0x83 => Some(3),
        b'J' | b'j' | b'r' | 0x84 => Some(5),
        b'G' | 0x95 => Some(9),
        b'U' | b'C' | 0x8a | 0x8c => number(1),
        b'T' | b'X' | b'B' | 0x8b => number(4),
        0x8d | 0x8e | 0x96 => number(8),
        b'F' | b'I' | b'L' | b'P' | b'S' | b'V' | b'g' | b'p' => lines(1),
        b'c' | b'i' => lines(2),
        _ => Some(1),
    };
    found.unwrap_or(usize::MAX).min(bytes.len())
}

fn split(mut bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while !bytes.is_empty() {
        let (piece, rest) = bytes.split_at(length(bytes));
        pieces.push(piece.to_vec());
        bytes = rest;
    }
    pieces
}

fn integer(value: i64, dice: &mut Dice) -> Vec<u8> {
    match (u8::try_from(value), u16::try_from(value), i32::try_from(value), dice.roll(4)) {
        (Ok(byte), _, _, 1..) => vec![b'K', byte],
        (_, Ok(word), _, 1..) => [&b"M"[..], &word.to_le_bytes()].concat(),
        (_, _, Ok(long), 1..) => [&b"J"[..], &long.to_le_bytes()].concat(),
        (.., 0) => format!("I{value}\n").into_bytes(),
        _ => [&[0x8a, 8][..], &value.to_le_bytes()].concat(),
    }
}

fn text(word: &str, dice: &mut Dice) -> Vec<u8> {
    let short = u8::try_from(word.len()).unwrap();
    match dice.roll(3) {
        0 => [&[b'X', short, 0, 0, 0], word.as_bytes()].concat(),
        1 => [&[b'U', short], word.as_bytes()].concat(),
        _ => [&[0x8c, short], word.as_bytes()].concat(),
    }
}

/// An opcode that was not there.
fn fresh(dice: &mut Dice) -> Vec<u8> {
    match dice.roll(6) {
        0 => integer(NUMBERS[dice.roll(NUMBERS.len())], dice),
        1 => text(WORDS[dice.roll(WORDS.len())], dice),
        2 => vec![b'h', u8::try_from(dice.roll(64)).unwrap()],
        3 => vec![b'q', u8::try_from(dice.roll(64)).unwrap()],
        4 => [&[0x95][..], &(dice.roll(1 << 20) as u64).to_le_bytes()].concat(),
        _ => vec![BARE[dice.roll(BARE.len())]],
    }
}

/// One change.
fn change(pieces: &mut Vec<Vec<u8>>, dice: &mut Dice) {
    let at = dice.roll(pieces.len());
    // Mostly a few opcodes, now and then about an entry, seldom many entries.
    let most = [1, 4, 40, 400][dice.roll(4)];
    let run = at..(at + 1 + dice.roll(most)).min(pieces.len());
    match dice.roll(8) {
        0 => drop(pieces.drain(run)),
        1 => {
            let copy = pieces[run].to_vec();
            let to = dice.roll(pieces.len() + 1);
            drop(pieces.splice(to..to, copy));
        }
        2 => {
            let copy = pieces[run.clone()].to_vec();
            drop(pieces.splice(run.end..run.end, copy));
        }
        3 => {
            let other = dice.roll(pieces.len());
            pieces.swap(at, other);
        }
        4 => pieces.insert(at, fresh(dice)),
        5 => pieces[at] = fresh(dice),
        6 => match pieces[at].split_first_mut() {
            Some((b'h' | b'q' | b'K', [index, ..])) => *index = index.wrapping_add([1, 255, 2, 254][dice.roll(4)]),
            Some((b'K' | b'M' | b'J' | b'I' | b'L' | 0x8a, _)) => {
                pieces[at] = integer(NUMBERS[dice.roll(NUMBERS.len())], dice);
            }
            Some((b'X' | b'U' | 0x8c, _)) => pieces[at] = text(WORDS[dice.roll(WORDS.len())], dice),
            _ => pieces[at] = fresh(dice),
        },
        _ => match pieces[at].last_mut() {
            Some(byte) => *byte ^= 1 << dice.roll(8),
            None => {}
        },
    }
}

/// Changes the pickle in the first `size` bytes of `data`, whose first `head` bytes are no part of it; gives its new size.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32, head: usize) -> usize {
    let mut dice = Dice(u64::from(seed) << 1 | 1);
    dice.roll(2);
    if size <= head || dice.roll(5) == 0 {
        return fuzzer_mutate(data, size, max_size);
    }
    let mut pieces = split(&data[head..size]);
    for _ in 0..=dice.roll(4) {
        if !pieces.is_empty() {
            change(&mut pieces, &mut dice);
        }
    }
    let changed: Vec<u8> = pieces.concat();
    let kept = changed.len().min(max_size.saturating_sub(head));
    data[head..head + kept].copy_from_slice(&changed[..kept]);
    head + kept
}
