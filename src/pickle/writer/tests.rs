//! Opcodes by hand; the python oracle in `tests/it/pickle_writer.rs` covers whole graphs.

use super::*;

/// What `write` puts between the header and STOP; frame headers are kept.
fn opcodes(layout: Layout, write: impl FnOnce(&mut Writer<Vec<u8>>) -> io::Result<()>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), layout).unwrap();
    write(&mut writer).unwrap();
    let (bytes, length) = writer.finish().unwrap();
    assert_eq!(u64::try_from(bytes.len()).unwrap(), length);
    assert_eq!(bytes[0], 0x80);
    assert_eq!(bytes.last(), Some(&STOP));
    bytes[2..bytes.len() - 1].to_vec()
}

const OLD: Layout = Layout::CPython(2);
const FRAMED: Layout = Layout::CPython(4);

#[test]
fn integers_take_the_shortest_opcode_of_their_layout() {
    let table: &[(i64, &[u8], &[u8])] = &[
        (0, b"K\0", b"K\0"),
        (255, b"K\xff", b"K\xff"),
        (256, b"M\0\x01", b"M\0\x01"),
        (65_535, b"M\xff\xff", b"M\xff\xff"),
        (65_536, b"J\0\0\x01\0", b"J\0\0\x01\0"),
        (i64::from(i32::MAX), b"J\xff\xff\xff\x7f", b"J\xff\xff\xff\x7f"),
        (-1, b"J\xff\xff\xff\xff", b"J\xff\xff\xff\xff"),
        (i64::from(i32::MIN), b"J\0\0\0\x80", b"J\0\0\0\x80"),
        (1 << 31, b"\x8a\x05\0\0\0\x80\0", b"\x8a\x08\0\0\0\x80\0\0\0\0"),
        (-(1 << 31) - 1, b"\x8a\x05\xff\xff\xff\x7f\xff", b"\x8a\x08\xff\xff\xff\x7f\xff\xff\xff\xff"),
        (0x7f8a_0000_0000, b"\x8a\x06\0\0\0\0\x8a\x7f", b"\x8a\x08\0\0\0\0\x8a\x7f\0\0"),
        (
            1_713_558_427_168_556,
            b"\x8a\x07\x2c\x6f\x5a\xe9\x78\x16\x06",
            b"\x8a\x08\x2c\x6f\x5a\xe9\x78\x16\x06\0",
        ),
        (i64::MAX, b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f", b"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f"),
        (i64::MIN, b"\x8a\x08\0\0\0\0\0\0\0\x80", b"\x8a\x08\0\0\0\0\0\0\0\x80"),
    ];
    for (value, cpython, jit) in table {
        assert_eq!(opcodes(OLD, |writer| writer.signed(*value)), *cpython, "{value}");
        assert_eq!(opcodes(Layout::Jit, |writer| writer.signed(*value)), *jit, "{value}");
    }
}

#[test]
fn numbers_beyond_63_bits_grow_a_byte_or_turn_negative() {
    let big = |layout, value| opcodes(layout, |writer| writer.unsigned(value));
    assert_eq!(big(OLD, 1 << 63), b"\x8a\x09\0\0\0\0\0\0\0\x80\0");
    assert_eq!(big(OLD, u64::MAX), b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0");
    assert_eq!(big(Layout::Jit, 1 << 63), b"\x8a\x08\0\0\0\0\0\0\0\x80");
    assert_eq!(big(Layout::Jit, u64::MAX), b"J\xff\xff\xff\xff");
}

fn list(layout: Layout, length: u64) -> Vec<u8> {
    opcodes(layout, |writer| {
        writer.open_list(length)?;
        for _ in 0..length {
            writer.boolean(true)?;
        }
        writer.close()
    })
}

fn dict(layout: Layout, length: u64) -> Vec<u8> {
    opcodes(layout, |writer| {
        writer.open_dict(length)?;
        for key in 0..length {
            writer.unsigned(key % 200)?;
            writer.boolean(false)?;
        }
        writer.close()
    })
}

#[test]
fn cpython_memoises_first_and_batches_by_the_thousand() {
    assert_eq!(list(OLD, 0), b"]q\0");
    assert_eq!(list(OLD, 1), b"]q\0\x88a");
    assert_eq!(list(OLD, 2), b"]q\0(\x88\x88e");
    assert_eq!(dict(OLD, 0), b"}q\0");
    assert_eq!(dict(OLD, 1), b"}q\0K\0\x89s");
    assert_eq!(dict(OLD, 2), b"}q\0(K\0\x89K\x01\x89u");
    // 3 bytes to open, a byte per item, 2 per batch.
    assert_eq!(list(OLD, 1000).len(), 3 + 1000 + 2);
    let two_batches = list(OLD, 1001);
    assert_eq!(two_batches.len(), 3 + 1001 + 4);
    assert!(two_batches.ends_with(b"\x88e(\x88e"));
    // A dict is asked for more after a full batch.
    assert!(dict(OLD, 1000).ends_with(b"\x89u(u"));
    assert!(dict(OLD, 999).ends_with(b"\x89u"));
    assert!(!dict(OLD, 999).ends_with(b"(u"));
}

#[test]
fn the_cpp_layout_memoises_last_and_only_what_is_shared() {
    assert_eq!(list(Layout::Jit, 0), b"](e");
    assert_eq!(list(Layout::Jit, 1), b"](\x88e");
    assert_eq!(dict(Layout::Jit, 0), b"}(u");
    assert_eq!(list(Layout::Jit, 1001).len(), 2 + 1001 + 1);
    let shared = opcodes(Layout::Jit, |writer| {
        writer.open_list(3)?;
        writer.open_list(0)?;
        let empty = writer.close_shared()?;
        writer.reference(empty)?;
        writer.pair(0, 7)?;
        writer.close()
    });
    assert_eq!(shared, b"](](eq\0h\0K\0K\x07\x86e");
}

#[test]
fn a_memo_index_of_256_needs_the_long_opcodes() {
    let many = opcodes(OLD, |writer| {
        writer.open_list(258)?;
        let mut last = None;
        for _ in 0..257 {
            writer.open_list(0)?;
            last = Some(writer.close_shared()?);
        }
        writer.reference(last.unwrap())?;
        writer.close()
    });
    // The outer list is 0, the inner ones 1 to 257.
    assert!(many.ends_with(b"]q\xff]r\0\x01\0\0]r\x01\x01\0\0j\x01\x01\0\0e"));
}

#[test]
fn texts_are_objects_or_symbols() {
    let texts = |layout| {
        opcodes(layout, |writer| {
            let key = writer.intern("key");
            writer.open_list(5)?;
            writer.symbol(key)?;
            writer.symbol(key)?;
            writer.text("key")?;
            writer.text("")?;
            writer.text("")?;
            writer.close()
        })
    };
    assert_eq!(texts(OLD), b"]q\0(X\x03\0\0\0keyq\x01h\x01X\x03\0\0\0keyq\x02X\0\0\0\0q\x03h\x03e");
    assert_eq!(texts(Layout::Jit), b"](X\x03\0\0\0keyq\0h\0h\0X\0\0\0\0q\x01h\x01e");
    assert!(texts(FRAMED).ends_with(b"]\x94(\x8c\x03key\x94h\x01\x8c\x03key\x94\x8c\0\x94h\x03e"));
}

#[test]
fn the_length_of_a_text_chooses_its_opcode() {
    let text = |layout, length| opcodes(layout, |writer| writer.text(&"x".repeat(length)));
    // Behind nine bytes of frame header.
    assert_eq!(text(FRAMED, 255)[9..11], *b"\x8c\xff");
    assert_eq!(text(FRAMED, 256)[9..14], *b"X\0\x01\0\0");
    assert_eq!(text(OLD, 255)[..5], *b"X\xff\0\0\0");
    // Outside of frames: what follows it is in the next one.
    assert_eq!(text(FRAMED, 70_000)[..5], *b"X\x70\x11\x01\0");
}

#[test]
fn frames_say_their_length_and_tiny_ones_have_no_header() {
    let tiny = opcodes(FRAMED, |writer| writer.boolean(true));
    assert_eq!(tiny, b"\x88");
    let long = opcodes(FRAMED, |writer| {
        writer.open_list(30_000)?;
        for _ in 0..30_000 {
            writer.pair(0, 0)?;
        }
        writer.close()
    });
    let mut at = 0;
    let mut frames = Vec::new();
    while at < long.len() {
        assert_eq!(long[at], 0x95);
        let length = u64::from_le_bytes(long[at + 1..at + 9].try_into().unwrap());
        at += 9 + usize::try_from(length).unwrap();
        frames.push(length);
    }
    // STOP is in the last frame, and `opcodes` cut it off.
    assert_eq!(at, long.len() + 1);
    assert!(frames.len() > 2);
    assert!(frames[..frames.len() - 1].iter().all(|length| (65_536..65_546).contains(length)));
}

#[test]
fn a_length_that_was_not_kept_is_an_error() {
    let mut writer = Writer::new(Vec::new(), OLD).unwrap();
    assert!(writer.close().is_err());
    writer.open_list(1).unwrap();
    writer.boolean(true).unwrap();
    assert!(writer.boolean(true).is_err());

    let mut writer = Writer::new(Vec::new(), OLD).unwrap();
    writer.open_dict(1).unwrap();
    writer.unsigned(1).unwrap();
    assert!(writer.close().is_err());

    let mut writer = Writer::new(Vec::new(), OLD).unwrap();
    writer.open_list(1).unwrap();
    assert!(writer.finish().is_err());
}

#[test]
fn a_failing_output_is_reported() {
    #[derive(Debug)]
    struct Full;
    impl Write for Full {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    assert_eq!(Writer::new(Full, OLD).unwrap_err().kind(), io::ErrorKind::StorageFull);
}
