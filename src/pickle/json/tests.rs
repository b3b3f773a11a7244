use super::*;
use crate::pickle::tests::KeepAll;

/// Hands out one byte at a time, so that every token crosses the end of the window.
struct Drip<'a>(&'a [u8]);

impl Read for Drip<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = buffer.len().min(1);
        Read::read(&mut self.0, &mut buffer[..count])
    }
}

fn items(json: &[u8]) -> Result<(State, Vec<Value>), PickleError> {
    let mut machine = JsonMachine::new(Drip(json), None, Limits::default());
    let end = machine.run(&mut KeepAll)?;
    let items = match end.root {
        Value::Node(node) => machine.state.tree().get(node).unwrap().1.to_vec(),
        Value::EmptyList | Value::EmptyDict { .. } => Vec::new(),
        other => vec![other],
    };
    Ok((machine.state, items))
}

fn error(json: &[u8]) -> String {
    items(json).unwrap_err().to_string()
}

#[test]
fn integers_keep_all_64_bits() {
    let (_, items) =
        items(b"[0, -1, 9223372036854775807, 18446744073709551615, -9223372036854775808]").unwrap();
    let expected =
        [Value::Int(0), Value::Int(-1), Value::Int(i64::MAX), Value::Wide(u64::MAX), Value::Int(i64::MIN)];
    assert_eq!(items, expected);
}

#[test]
fn words_and_floats_are_pythons() {
    let (_, items) = items(b" [true,false,null,1.5,1e3,-Infinity] \n").unwrap();
    let expected = [
        Value::Bool(true),
        Value::Bool(false),
        Value::None,
        Value::Float(1.5),
        Value::Float(1000.0),
        Value::Float(f64::NEG_INFINITY),
    ];
    assert_eq!(items, expected);
}

#[test]
fn escapes_become_the_text_that_a_pickle_has() {
    let (state, items) = items(br#"["a\"\\\/\n\u00e9\ud83d\ude00", "x\udcffy"]"#).unwrap();
    let texts: Vec<&str> = items
        .iter()
        .map(|item| match item {
            Value::Text(id) => state.text(*id),
            _ => panic!("no text"),
        })
        .collect();
    assert_eq!(
        texts,
        ["a\"\\/\né😀", "x\\udcffy"],
        "a lone surrogate shows as Python's backslashreplace does"
    );
}

#[test]
fn empty_containers_and_a_byte_order_mark_are_fine() {
    assert_eq!(items(b"\xef\xbb\xbf{}").unwrap().1, []);
    assert_eq!(items(b"[]").unwrap().1, []);
}

#[test]
fn errors_say_what_and_where() {
    for (json, expected) in [
        (b"[1 2]".as_slice(), "at byte 3: malformed JSON: a comma or the end of a list or object is missing"),
        (b"[1,]", "at byte 3: malformed JSON: a value is missing"),
        (b"{1: 2}", "at byte 1: malformed JSON: a key in quotes is missing"),
        (b"{\"a\" 2}", "at byte 1: malformed JSON: the colon behind a key is missing"),
        (b"{\"a\": 2]", "at byte 7: malformed JSON: a comma or the end of a list or object is missing"),
        (b"[007]", "at byte 1: malformed JSON: a number with a leading zero"),
        (b"[nul]", "at byte 1: malformed JSON: neither a number nor true, false or null"),
        (b"[\"\\x\"]", "at byte 1: malformed JSON: an escape that JSON does not have"),
        (b"[\"\\u12g4\"]", "at byte 1: malformed JSON: an escape without four hexadecimal digits"),
        (b"[\"a\nb\"]", "at byte 1: malformed JSON: a control character in a string"),
        (b"[18446744073709551616]", "at byte 1: an integer of more than 64 bits"),
        (b"[1, \"ab", "at byte 4: the file ends in the middle of a JSON string"),
        (b"[1, 23", "at byte 4: the file ends in the middle of a JSON number or word"),
        (b"[1, 2 ", "at byte 6: the file ends in the middle of the JSON"),
    ] {
        assert_eq!(error(json), expected, "{}", String::from_utf8_lossy(json));
    }
}

#[test]
fn depth_is_limited() {
    assert!(error(&b"[".repeat(1000)).contains("levels of nesting"));
}

#[test]
fn what_stands_behind_the_document_is_counted() {
    let mut machine = JsonMachine::new(b"[] \n x\0".as_slice(), None, Limits::default());
    assert_eq!(machine.run(&mut KeepAll).unwrap().trailing, 1);
}
