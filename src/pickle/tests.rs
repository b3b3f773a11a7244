//! The machine against bytes written by hand: every error variant, and what hostile bytes may cost.

use std::io::{self, Read};

use super::memo::Memo;
use super::reader::Reader;
use super::*;

/// Takes every dict, keeps no list.
#[derive(Default)]
struct TakeAll {
    dicts: u64,
}

impl Sink for TakeAll {
    type Error = PickleError;

    fn dict(&mut self, _: &mut State, at: usize, _: &[Value]) -> Result<Option<Value>, PickleError> {
        self.dicts += 1;
        Ok((at > 0).then_some(Value::Taken { kind: 0, count: 1 }))
    }

    fn list(&mut self, _: &mut State, _: &[Value]) -> Result<Option<Value>, PickleError> {
        Ok(None)
    }

    fn reopen(&self, _: Value) -> Option<Vec<Value>> {
        None
    }
}

/// Keeps everything.
pub(super) struct KeepAll;

impl Sink for KeepAll {
    type Error = PickleError;

    fn dict(&mut self, _: &mut State, _: usize, _: &[Value]) -> Result<Option<Value>, PickleError> {
        Ok(None)
    }

    fn list(&mut self, _: &mut State, _: &[Value]) -> Result<Option<Value>, PickleError> {
        Ok(None)
    }

    fn reopen(&self, _: Value) -> Option<Vec<Value>> {
        None
    }
}

fn machine(bytes: &[u8]) -> Machine<&[u8]> {
    Machine::new(bytes, u64::try_from(bytes.len()).ok(), Limits::default())
}

fn root(bytes: &[u8]) -> Value {
    machine(bytes).run(&mut KeepAll).unwrap().root
}

fn error(bytes: &[u8]) -> PickleError {
    machine(bytes).run(&mut KeepAll).unwrap_err()
}

/// The error of the same bytes when their number is not known beforehand.
fn error_of_stream(bytes: &[u8]) -> PickleError {
    Machine::new(bytes, None, Limits::default()).run(&mut KeepAll).unwrap_err()
}

macro_rules! fails {
    ($bytes:expr, $offset:expr, $kind:pat) => {
        let error = error($bytes);
        assert!(matches!(error.kind, $kind), "{error:?}");
        assert_eq!(error.offset, $offset, "{error:?}");
        assert!(error.hint().is_some(), "{error:?}");
    };
}

#[test]
fn an_empty_input_is_an_error() {
    fails!(b"", 0, PickleErrorKind::Empty);
}

#[test]
fn a_pickle_without_stop_is_truncated() {
    fails!(b"\x80\x02N", 3, PickleErrorKind::Truncated { .. });
    fails!(b"\x80", 0, PickleErrorKind::BeyondEnd { claimed: 1, remaining: 0, .. });
}

#[test]
fn an_argument_that_goes_beyond_the_file_is_said_to() {
    fails!(
        b"\x80\x02X\xff\xff\xff\x03ab",
        2,
        PickleErrorKind::BeyondEnd { claimed: 0x03ff_ffff, remaining: 2, .. }
    );
    fails!(b"\x80\x02J\x01", 2, PickleErrorKind::BeyondEnd { claimed: 4, remaining: 1, .. });
    fails!(b"\x80\x02B\xff\xff\xff\xffab", 2, PickleErrorKind::BeyondEnd { .. });
    let error = error_of_stream(b"\x80\x02X\xff\xff\xff\x03ab");
    assert!(matches!(error.kind, PickleErrorKind::Truncated { inside: "BINUNICODE" }), "{error:?}");
}

#[test]
fn a_string_beyond_the_limit_is_refused_before_it_is_read() {
    fails!(b"\x80\x04\x8d\xff\xff\xff\xff\xff\xff\xff\xffab", 2, PickleErrorKind::LimitExceeded { .. });
}

#[test]
fn unknown_bytes_are_no_opcodes() {
    fails!(b"\x80\x02N\xff.", 3, PickleErrorKind::UnknownOpcode(0xff));
    fails!(b"\x80\x06N.", 0, PickleErrorKind::Protocol(6));
}

#[test]
fn refused_opcodes_say_their_name() {
    fails!(b"\x80\x02NNR.", 4, PickleErrorKind::Refused { opcode: "REDUCE", what: None });
    fails!(b"\x80\x04\x8f.", 2, PickleErrorKind::Refused { opcode: "EMPTY_SET", .. });
}

#[test]
fn a_memo_entry_has_to_exist() {
    fails!(b"\x80\x02h\x05.", 2, PickleErrorKind::MissingMemo(5));
    fails!(b"\x80\x02j\xff\xff\xff\xff.", 2, PickleErrorKind::MissingMemo(0xffff_ffff));
    fails!(b"g99999999999\n.", 0, PickleErrorKind::NotAPickle(Lookalike::Text));
    fails!(b"\x80\x02g99999999999\n.", 2, PickleErrorKind::MissingMemo(99_999_999_999));
}

#[test]
fn a_dict_that_was_taken_cannot_come_back() {
    let bytes = b"\x80\x02](}q\x00(K\x01K\x02uh\x00e.";
    let error = machine(bytes).run(&mut TakeAll::default()).unwrap_err();
    assert!(matches!(error.kind, PickleErrorKind::TakenMemo(0)), "{error:?}");
    assert!(error.hint().is_some());
}

#[test]
fn opcodes_need_their_values() {
    fails!(b"\x80\x02a.", 2, PickleErrorKind::StackUnderflow { opcode: "APPEND" });
    fails!(b"\x80\x02Na.", 3, PickleErrorKind::StackUnderflow { opcode: "APPEND" });
    fails!(b"\x80\x02NNs.", 4, PickleErrorKind::StackUnderflow { opcode: "SETITEM" });
    fails!(b"\x80\x020.", 2, PickleErrorKind::StackUnderflow { opcode: "POP" });
    fails!(b"\x80\x022.", 2, PickleErrorKind::StackUnderflow { opcode: "DUP" });
    fails!(b"\x80\x02q\x00.", 2, PickleErrorKind::StackUnderflow { opcode: "BINPUT" });
    fails!(b"\x80\x04\x94.", 2, PickleErrorKind::StackUnderflow { opcode: "MEMOIZE" });
    fails!(b"\x80\x02N\x86.", 3, PickleErrorKind::StackUnderflow { opcode: "TUPLE2" });
    fails!(b"\x80\x02(e.", 3, PickleErrorKind::StackUnderflow { opcode: "APPENDS" });
    fails!(b"\x80\x02(u.", 3, PickleErrorKind::StackUnderflow { opcode: "SETITEMS" });
}

#[test]
fn marks_have_to_be_there_and_not_in_the_way() {
    for opcode in ["e", "u", "t", "l", "d", "1"] {
        let bytes = [b"\x80\x02N", opcode.as_bytes(), b"."].concat();
        fails!(&bytes, 3, PickleErrorKind::Mark { problem: "there is no MARK", .. });
    }
    fails!(b"\x80\x02](a.", 4, PickleErrorKind::Mark { opcode: "APPEND", .. });
    fails!(b"\x80\x02}(Ns.", 5, PickleErrorKind::Mark { opcode: "SETITEM", .. });
    fails!(b"\x80\x02(q\x00.", 3, PickleErrorKind::Mark { opcode: "BINPUT", .. });
    fails!(b"\x80\x02}(Nu.", 5, PickleErrorKind::Mark { opcode: "SETITEMS", .. });
    fails!(b"\x80\x02(Nd.", 4, PickleErrorKind::Mark { opcode: "DICT", .. });
}

#[test]
fn only_lists_and_dicts_get_items() {
    fails!(b"\x80\x02NNa.", 4, PickleErrorKind::WrongTarget { opcode: "APPEND", found: "None" });
    fails!(b"\x80\x02}Na.", 4, PickleErrorKind::WrongTarget { opcode: "APPEND", .. });
    fails!(b"\x80\x02](NNu.", 6, PickleErrorKind::WrongTarget { opcode: "SETITEMS", .. });
    fails!(b"\x80\x02]NNs.", 5, PickleErrorKind::WrongTarget { opcode: "SETITEM", .. });
    fails!(b"\x80\x02((Ne.", 5, PickleErrorKind::WrongTarget { opcode: "APPENDS", found: "a mark" });
}

#[test]
fn integers_beyond_64_bits_are_refused() {
    fails!(b"\x80\x02\x8a\x09\0\0\0\0\0\0\0\0\x01.", 2, PickleErrorKind::IntegerTooLarge);
    fails!(b"\x80\x02\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff.", 2, PickleErrorKind::IntegerTooLarge);
    fails!(b"\x80\x02\x8b\xff\xff\xff\x7f.", 2, PickleErrorKind::IntegerTooLarge);
    fails!(b"\x80\x02L18446744073709551616L\n.", 2, PickleErrorKind::IntegerTooLarge);
    fails!(b"\x80\x02I99999999999999999999999999999999999999999\n.", 2, PickleErrorKind::IntegerTooLarge);
}

#[test]
fn integers_of_every_encoding_have_their_value() {
    // The vectors of the format's description, and the edges round them.
    let cases: [(&[u8], Value); 16] = [
        (b"K\xff", Value::Int(255)),
        (b"M\xff\xff", Value::Int(65_535)),
        (b"J\xff\xff\xff\x7f", Value::Int(2_147_483_647)),
        (b"J\xff\xff\xff\xff", Value::Int(-1)),
        (b"J\0\0\0\x80", Value::Int(-2_147_483_648)),
        (b"\x8a\x05\0\0\0\x80\0", Value::Int(1 << 31)),
        (b"\x8a\x08\0\0\0\x80\0\0\0\0", Value::Int(1 << 31)),
        (b"\x8a\x05\xff\xff\xff\x7f\xff", Value::Int(-2_147_483_649)),
        (b"\x8a\x06\0\0\0\0\x8a\x7f", Value::Int(0x7f8a_0000_0000)),
        (b"\x8a\x07\x2c\x6f\x5a\xe9\x78\x16\x06", Value::Int(1_713_558_427_168_556)),
        (b"\x8a\x09\0\0\0\0\0\0\0\x80\0", Value::Wide(1 << 63)),
        (b"\x8a\x08\0\0\0\0\0\0\0\x80", Value::Int(i64::MIN)),
        (b"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\0", Value::Wide(u64::MAX)),
        (b"\x8a\0", Value::Int(0)),
        (b"\x8a\x0b\x05\0\0\0\0\0\0\0\0\0\0", Value::Int(5)),
        (b"\x8b\x02\0\0\0\0\x80", Value::Int(0)),
    ];
    for (bytes, expected) in cases {
        let bytes = [bytes, b"."].concat();
        let expected = if bytes.starts_with(b"\x8b") { Value::Int(-32_768) } else { expected };
        assert_eq!(root(&[b"\x80\x02", bytes.as_slice()].concat()), expected, "{bytes:?}");
    }
    let lines: [(&[u8], Value); 9] = [
        (b"I00\n.", Value::Bool(false)),
        (b"I01\n.", Value::Bool(true)),
        (b"I1\n.", Value::Int(1)),
        (b"I-7\n.", Value::Int(-7)),
        (b"L9223372036854775808L\n.", Value::Wide(1 << 63)),
        (b"L-9223372036854775808L\n.", Value::Int(i64::MIN)),
        (b"F1.5\n.", Value::Float(1.5)),
        (b"F-1e-05\n.", Value::Float(-1e-5)),
        (b"Finf\n.", Value::Float(f64::INFINITY)),
    ];
    for (bytes, expected) in lines {
        assert_eq!(root(bytes), expected, "{bytes:?}");
    }
}

#[test]
fn malformed_lines_are_refused() {
    for bytes in [
        &b"Iseven\n."[..],
        b"I\n.",
        b"I-\n.",
        b"Lx\n.",
        b"Fx\n.",
        b"gx\n.",
        b"Npx\n.",
        b"V\\u12\n.",
        b"Sx\n.",
    ] {
        let bytes = [b"\x80\x02", bytes].concat();
        assert!(matches!(error(&bytes).kind, PickleErrorKind::BadText { .. }), "{bytes:?}");
    }
}

#[test]
fn strings_of_old_protocols_are_text() {
    let text = |bytes: &[u8]| {
        let mut machine = machine(bytes);
        match machine.run(&mut KeepAll).unwrap().root {
            Value::Text(id) => machine.state.text(id).to_owned(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(text(b"S'a\\n\\x41\\\\\\'b'\n."), "a\nA\\'b");
    assert_eq!(text(b"S\"x\\q\"\n."), "x\\q");
    assert_eq!(text(b"U\x02hi."), "hi");
    assert_eq!(text(b"T\x02\0\0\0hi."), "hi");
    assert_eq!(text(b"V\\u00e9\\U0001f600\\x\xe9\n."), "é😀\\xé");
    assert_eq!(text(b"V\\udcff\n."), "\\udcff");
    assert_eq!(text(b"X\x04\0\0\0a\xed\xb3\xbf."), "a\\udcff");
    assert_eq!(text(b"X\x03\0\0\0a\xffb."), "a\\xffb");
    assert_eq!(text(b"X\x02\0\0\0\xed\xb3."), "\\xed\\xb3");
}

#[test]
fn rare_opcodes_do_what_python_does() {
    assert_eq!(root(b"\x80\x02N(NN1."), Value::None);
    assert_eq!(root(b"\x80\x02NK\x010."), Value::None);
    assert_eq!(root(b"\x80\x02N(0."), Value::None);
    assert_eq!(root(b"\x80\x03C\x02ab."), Value::Opaque);
    assert_eq!(root(b"\x80\x03B\x02\0\0\0ab."), Value::Opaque);
    assert_eq!(root(b"\x80\x04\x8e\x02\0\0\0\0\0\0\0ab."), Value::Opaque);
    let items = |bytes: &[u8]| {
        let mut machine = machine(bytes);
        match machine.run(&mut KeepAll).unwrap().root {
            Value::Node(node) => machine.state.tree().get(node).map(|(kind, items)| (kind, items.to_vec())),
            other => panic!("{other:?}"),
        }
    };
    let (one, two) = (Value::Int(1), Value::Int(2));
    assert_eq!(items(b"(K\x01K\x02l."), Some((NodeKind::List, vec![one, two])));
    assert_eq!(items(b"(K\x01K\x02d."), Some((NodeKind::Dict, vec![one, two])));
    assert_eq!(items(b"(K\x01K\x02K\x01t."), Some((NodeKind::Tuple, vec![one, two, one])));
    assert_eq!(items(b"\x80\x02K\x01\x85."), Some((NodeKind::Tuple, vec![one])));
    assert_eq!(items(b"\x80\x02K\x01K\x02K\x01\x87."), Some((NodeKind::Tuple, vec![one, two, one])));
    assert_eq!(items(b"\x80\x02)."), Some((NodeKind::Tuple, vec![])));
    assert_eq!(items(b"\x80\x02]K\x01a2\x86."), None.or(Some((NodeKind::Tuple, vec![Value::Node(0); 2]))));
    assert_eq!(items(b"\x80\x02]q\x00K\x01aK\x02a."), Some((NodeKind::List, vec![one, two])));
}

#[test]
fn stop_returns_one_value() {
    fails!(b"\x80\x02.", 2, PickleErrorKind::UnfinishedStop(0));
    fails!(b"\x80\x02NN.", 4, PickleErrorKind::UnfinishedStop(2));
    fails!(b"\x80\x02(.", 3, PickleErrorKind::UnfinishedStop(1));
}

#[test]
fn bytes_behind_stop_are_counted_unless_zero() {
    let end = machine(b"\x80\x02N.\0\0\0").run(&mut KeepAll).unwrap();
    assert_eq!((end.offset, end.trailing), (4, 0));
    let end = machine(b"\x80\x02N.\0ab").run(&mut KeepAll).unwrap();
    assert_eq!((end.offset, end.trailing), (4, 2));
}

#[test]
fn a_container_that_contains_itself_is_refused() {
    let cases: [&[u8]; 7] = [
        b"\x80\x02]q\x00h\x00a.",
        b"\x80\x02]q\x00(h\x00K\x01e.",
        b"\x80\x02}q\x00K\x01h\x00s.",
        b"\x80\x02}q\x00(K\x01h\x00u.",
        b"\x80\x02]q\x00]q\x01h\x00aa.",
        b"\x80\x04]\x94h\x00a.",
        b"\x80\x02]2a.",
    ];
    for bytes in cases {
        let error = error(bytes);
        assert!(matches!(error.kind, PickleErrorKind::SelfReference), "{bytes:?}: {error:?}");
        assert!(error.hint().is_some());
    }
}

#[test]
fn a_list_that_grows_after_it_was_taken_is_refused() {
    fails!(b"\x80\x02]]q\x00ah\x00K\x01a.", 11, PickleErrorKind::SelfReference);
}

#[test]
fn memo_indexes_are_bounded_by_what_was_read() {
    fails!(b"\x80\x02Nr\xff\xff\xff\x7f.", 3, PickleErrorKind::LimitExceeded { .. });
    fails!(b"\x80\x02Np4000000000\n.", 3, PickleErrorKind::LimitExceeded { .. });
    let mut memo = Memo::default();
    assert!(memo.put(1 << 30, 1 << 20, Entry::OPAQUE).is_err());
    memo.put(1 << 10, 1 << 20, Entry::OPAQUE).unwrap();
    assert_eq!(memo.next(), 1, "holes are no entries");
}

#[test]
fn the_stack_is_bounded() {
    let limits = Limits { stack: 1000, ..Limits::default() };
    for filler in [&b"]"[..], b"(", b"N", b"}", b"]2"] {
        let bytes = [b"\x80\x02", filler.repeat(2000).as_slice(), b"."].concat();
        let error = Machine::new(bytes.as_slice(), None, limits).run(&mut KeepAll).unwrap_err();
        assert!(matches!(error.kind, PickleErrorKind::LimitExceeded { limit: 1000, .. }), "{error:?}");
    }
}

#[test]
fn nesting_is_bounded() {
    let bytes = [&b"\x80\x02"[..], &b"]".repeat(100_000), &b"a".repeat(99_999), b"."].concat();
    let error = error(&bytes);
    assert!(
        matches!(error.kind, PickleErrorKind::LimitExceeded { of: "levels of nesting", limit: 100 }),
        "{error:?}"
    );
}

#[test]
fn shared_lists_that_double_at_each_level_cost_nothing() {
    let mut bytes = b"\x80\x02]q\x00K\x01a0".to_vec();
    for level in 0..90_u8 {
        bytes.extend([b']', b'q', level + 1, b'(', b'h', level, b'h', level, b'e', b'0']);
    }
    bytes.extend(b"h\x5a.");
    let mut machine = machine(&bytes);
    machine.run(&mut KeepAll).unwrap();
    assert!(machine.state.tree().lost() > 0, "two to the 90 values are not kept");
}

#[test]
fn a_list_of_a_million_dicts_needs_no_stack() {
    let mut bytes = b"\x80\x02](".to_vec();
    for _ in 0..1_000_000 {
        bytes.extend(b"}(K\x01K\x02u");
    }
    bytes.extend(b"e.");
    let limits = Limits { stack: 16, ..Limits::default() };
    let mut sink = TakeAll::default();
    let end = Machine::new(bytes.as_slice(), None, limits).run(&mut sink).unwrap();
    assert_eq!(sink.dicts, 1_000_000);
    assert_eq!(end.root, Value::TakenList { kind: 0, count: 1_000_000 });
}

#[test]
fn what_exceeds_the_budget_is_opaque() {
    let limits = Limits { tree_values: 1000, ..Limits::default() };
    let mut bytes = b"\x80\x02](".to_vec();
    (0..2000).for_each(|_| bytes.extend(b"](K\x01K\x02e"));
    bytes.extend(b"e.");
    let mut machine = Machine::new(bytes.as_slice(), None, limits);
    assert_eq!(machine.run(&mut KeepAll).unwrap().root, Value::Opaque);
}

/// Gives one byte at a time and then fails.
struct Dripping<'a>(&'a [u8]);

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.0, buffer) {
            ([first, rest @ ..], [slot, ..]) => {
                *slot = *first;
                self.0 = rest;
                Ok(1)
            }
            _ => Err(io::Error::other("the disk is gone")),
        }
    }
}

#[test]
fn input_may_come_in_any_portions_and_may_fail() {
    let bytes = b"\x80\x02](K\x01X\x03\0\0\0abcI-5\ne.";
    let mut machine = Machine::new(Dripping(bytes).take(20), None, Limits::default());
    assert!(machine.run(&mut KeepAll).is_ok());
    let error = Machine::new(Dripping(&bytes[..9]), None, Limits::default()).run(&mut KeepAll).unwrap_err();
    assert!(matches!(error.kind, PickleErrorKind::Io(_)), "{error:?}");
}

#[test]
fn a_length_that_lies_grows_the_window_only_as_bytes_arrive() {
    let mut reader = Reader::new(io::repeat(7).take(5_000_000), None);
    let error = reader.take(1 << 40, "a string").unwrap_err();
    assert!(matches!(error, PickleErrorKind::Truncated { inside: "a string" }));
    assert!(reader.capacity() <= 16 << 20, "{}", reader.capacity());
}
