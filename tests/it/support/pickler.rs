//! Writes pickles the way the two real writers do, from a graph whose shared objects are shared pointers.
//!
//! CPython: memoizes a container before its items, writes batches of 1000, no MARK round a single item. PyTorch's C++
//! pickler: memoizes after the items and only what is shared, one batch whatever its length, integers of 8 bytes.

use std::collections::HashMap;
use std::rc::Rc;

/// A Python object. Clones are the same object.
#[derive(Debug, Clone)]
pub(crate) enum Py {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<Vec<u8>>),
    List(Rc<Vec<Py>>),
    Tuple(Rc<Vec<Py>>),
    Dict(Rc<Vec<(Py, Py)>>),
}

pub(crate) fn int(value: impl Into<i128>) -> Py {
    Py::Int(value.into())
}

pub(crate) fn text(value: &str) -> Py {
    Py::Str(Rc::new(value.as_bytes().to_vec()))
}

pub(crate) fn list(items: impl IntoIterator<Item = Py>) -> Py {
    Py::List(Rc::new(items.into_iter().collect()))
}

pub(crate) fn tuple(items: impl IntoIterator<Item = Py>) -> Py {
    Py::Tuple(Rc::new(items.into_iter().collect()))
}

pub(crate) fn dict<'a>(items: impl IntoIterator<Item = (&'a str, Py)>) -> Py {
    Py::Dict(Rc::new(items.into_iter().map(|(key, value)| (text(key), value)).collect()))
}

impl Py {
    /// The dict with a key set, or added at the end.
    pub(crate) fn with(&self, key: &str, value: Py) -> Py {
        let mut items = self.without(key).items();
        items.push((text(key), value));
        Py::Dict(Rc::new(items))
    }

    /// The dict without a key.
    pub(crate) fn without(&self, key: &str) -> Py {
        let items = self.items().into_iter();
        let keep = |name: &Py| !matches!(name, Py::Str(text) if text.as_slice() == key.as_bytes());
        Py::Dict(Rc::new(items.filter(|(name, _)| keep(name)).collect()))
    }

    /// The dict with its keys in reverse order.
    pub(crate) fn reversed(&self) -> Py {
        Py::Dict(Rc::new(self.items().into_iter().rev().collect()))
    }

    fn items(&self) -> Vec<(Py, Py)> {
        match self {
            Py::Dict(items) => items.to_vec(),
            other => panic!("no dict: {other:?}"),
        }
    }
}

/// Identity of an object, as the picklers' memos know it. Keys and strings are known by value: keys are interned in
/// CPython, and the C++ pickler memoizes every string by value.
#[derive(PartialEq, Eq, Hash)]
enum Identity {
    Text(Vec<u8>),
    Object(usize),
}

fn identity(object: &Py) -> Option<Identity> {
    match object {
        Py::Str(text) => Some(Identity::Text(text.to_vec())),
        Py::List(items) | Py::Tuple(items) => Some(Identity::Object(Rc::as_ptr(items) as usize)),
        Py::Dict(items) => Some(Identity::Object(Rc::as_ptr(items) as usize)),
        _ => None,
    }
}

struct Writer {
    out: Vec<u8>,
    protocol: u8,
    memo: HashMap<Identity, usize>,
    /// Writes a FRAME opcode with a made-up length after every so many opcodes.
    frame_every: Option<usize>,
    opcodes: usize,
}

/// A pickle as CPython's `pickle.dumps(object, protocol)` writes it, FRAME placement apart.
pub(crate) fn cpython(object: &Py, protocol: u8) -> Vec<u8> {
    write_cpython(object, protocol, None)
}

/// The same in protocol 4, with a FRAME between any two opcodes now and then.
pub(crate) fn cpython_with_frames(object: &Py, frame_every: usize) -> Vec<u8> {
    write_cpython(object, 4, Some(frame_every))
}

fn write_cpython(object: &Py, protocol: u8, frame_every: Option<usize>) -> Vec<u8> {
    let mut writer = Writer { out: Vec::new(), protocol, memo: HashMap::new(), frame_every, opcodes: 0 };
    if protocol >= 2 {
        writer.out.extend([0x80, protocol]);
    }
    writer.object(object);
    writer.op(b".");
    writer.out
}

/// Two's complement, little-endian, as short as CPython writes it.
fn minimal(value: i128) -> Vec<u8> {
    let mut bytes = value.to_le_bytes().to_vec();
    while let [.., before, last] = bytes.as_slice() {
        let is_padding = (*last == 0 && before & 0x80 == 0) || (*last == 0xff && before & 0x80 != 0);
        if !is_padding {
            break;
        }
        bytes.pop();
    }
    bytes
}

fn small_int(value: i128) -> Option<Vec<u8>> {
    if let Ok(byte) = u8::try_from(value) {
        Some(vec![b'K', byte])
    } else if let Ok(word) = u16::try_from(value) {
        Some([&b"M"[..], &word.to_le_bytes()].concat())
    } else {
        let long = i32::try_from(value).ok()?;
        Some([&b"J"[..], &long.to_le_bytes()].concat())
    }
}

impl Writer {
    fn op(&mut self, bytes: &[u8]) {
        self.out.extend_from_slice(bytes);
        self.opcodes += 1;
        if self.frame_every.is_some_and(|every| self.opcodes.is_multiple_of(every)) && bytes != b"." {
            self.out.push(0x95);
            self.out.extend(u64::MAX.to_le_bytes());
        }
    }

    fn put(&mut self, object: &Py) {
        let index = self.memo.len();
        self.memo.insert(identity(object).unwrap(), index);
        let op = match (self.protocol, u8::try_from(index)) {
            (4.., _) => vec![0x94],
            (0, _) => format!("p{index}\n").into_bytes(),
            (_, Ok(byte)) => vec![b'q', byte],
            _ => [&b"r"[..], &u32::try_from(index).unwrap().to_le_bytes()].concat(),
        };
        self.op(&op);
    }

    fn get(&mut self, index: usize) {
        let op = match (self.protocol, u8::try_from(index)) {
            (0, _) => format!("g{index}\n").into_bytes(),
            (_, Ok(byte)) => vec![b'h', byte],
            _ => [&b"j"[..], &u32::try_from(index).unwrap().to_le_bytes()].concat(),
        };
        self.op(&op);
    }

    fn object(&mut self, object: &Py) {
        if let Some(index) = identity(object).and_then(|identity| self.memo.get(&identity)) {
            return self.get(*index);
        }
        match object {
            Py::None => self.op(b"N"),
            Py::Bool(flag) => self.bool(*flag),
            Py::Int(value) => self.int(*value),
            Py::Float(value) if self.protocol == 0 => self.op(format!("F{value:?}\n").as_bytes()),
            Py::Float(value) => self.op(&[&b"G"[..], &value.to_be_bytes()].concat()),
            Py::Str(text) => {
                self.text(text);
                self.put(object);
            }
            Py::List(items) => {
                self.op(if self.protocol == 0 { b"(l" } else { b"]" });
                self.put(object);
                self.items(items);
            }
            Py::Tuple(items) => {
                self.tuple(items);
                self.put(object);
            }
            Py::Dict(items) => {
                self.op(if self.protocol == 0 { b"(d" } else { b"}" });
                self.put(object);
                self.pairs(items);
            }
        }
    }

    fn bool(&mut self, flag: bool) {
        match (self.protocol, flag) {
            (0 | 1, true) => self.op(b"I01\n"),
            (0 | 1, false) => self.op(b"I00\n"),
            (_, true) => self.op(&[0x88]),
            (_, false) => self.op(&[0x89]),
        }
    }

    fn int(&mut self, value: i128) {
        if self.protocol == 0 {
            let line =
                if i32::try_from(value).is_ok() { format!("I{value}\n") } else { format!("L{value}L\n") };
            return self.op(line.as_bytes());
        }
        match small_int(value) {
            Some(op) => self.op(&op),
            None if self.protocol == 1 => self.op(format!("L{value}L\n").as_bytes()),
            None => {
                let bytes = minimal(value);
                self.op(&[&[0x8a, u8::try_from(bytes.len()).unwrap()], bytes.as_slice()].concat());
            }
        }
    }

    fn text(&mut self, text: &[u8]) {
        let op = match (self.protocol, u8::try_from(text.len())) {
            (0, _) => {
                let escaped =
                    String::from_utf8(text.to_vec()).unwrap().chars().fold(String::new(), |line, c| {
                        match u32::from(c) {
                            0x5c | 0x0a | 0x0d | 0x00 | 0x1a | 0x100..=0xffff => {
                                line + &format!("\\u{:04x}", u32::from(c))
                            }
                            0x1_0000.. => line + &format!("\\U{:08x}", u32::from(c)),
                            _ => line + &c.to_string(),
                        }
                    });
                let latin1: Vec<u8> = escaped.chars().map(|c| u8::try_from(u32::from(c)).unwrap()).collect();
                [&b"V"[..], &latin1, b"\n"].concat()
            }
            (4.., Ok(length)) => [&[0x8c, length], text].concat(),
            _ => [&b"X"[..], &u32::try_from(text.len()).unwrap().to_le_bytes(), text].concat(),
        };
        self.op(&op);
    }

    fn items(&mut self, items: &[Py]) {
        for batch in items.chunks(if self.protocol == 0 { 1 } else { 1000 }) {
            if let [item] = batch {
                self.object(item);
                self.op(b"a");
            } else {
                self.op(b"(");
                for item in batch {
                    self.object(item);
                }
                self.op(b"e");
            }
        }
    }

    fn pairs(&mut self, items: &[(Py, Py)]) {
        for batch in items.chunks(if self.protocol == 0 { 1 } else { 1000 }) {
            if let [(key, value)] = batch {
                self.object(key);
                self.object(value);
                self.op(b"s");
            } else {
                self.op(b"(");
                for (key, value) in batch {
                    self.object(key);
                    self.object(value);
                }
                self.op(b"u");
            }
        }
    }

    fn tuple(&mut self, items: &[Py]) {
        let short = self.protocol >= 2 && (1..=3).contains(&items.len());
        if !short {
            self.op(b"(");
        }
        for item in items {
            self.object(item);
        }
        match items.len() {
            1 if short => self.op(&[0x85]),
            2 if short => self.op(&[0x86]),
            3 if short => self.op(&[0x87]),
            _ => self.op(b"t"),
        }
    }
}

/// A pickle as PyTorch's C++ pickler writes it.
pub(crate) fn cpp(object: &Py) -> Vec<u8> {
    let mut out = vec![0x80, 2];
    write_cpp(object, &mut out, &mut HashMap::new());
    out.push(b'.');
    out
}

fn write_cpp(object: &Py, out: &mut Vec<u8>, memo: &mut HashMap<Identity, usize>) {
    if let Some(index) = identity(object).and_then(|identity| memo.get(&identity)) {
        match u8::try_from(*index) {
            Ok(byte) => out.extend([b'h', byte]),
            Err(_) => out.extend([&b"j"[..], &u32::try_from(*index).unwrap().to_le_bytes()].concat()),
        }
        return;
    }
    let shared = match object {
        Py::None => return out.push(b'N'),
        Py::Bool(flag) => return out.push(if *flag { 0x88 } else { 0x89 }),
        Py::Float(value) => return out.extend([&b"G"[..], &value.to_be_bytes()].concat()),
        Py::Int(value) => {
            // size_t is cast to int64_t on the way.
            let value =
                i64::try_from(*value).unwrap_or_else(|_| u64::try_from(*value).unwrap().cast_signed());
            return match small_int(value.into()) {
                Some(op) => out.extend(op),
                None => out.extend([&[0x8a, 8][..], &value.to_le_bytes()].concat()),
            };
        }
        Py::Str(text) => {
            out.extend([&b"X"[..], &u32::try_from(text.len()).unwrap().to_le_bytes(), text].concat());
            true
        }
        Py::List(items) => {
            out.extend(b"](");
            for item in items.iter() {
                write_cpp(item, out, memo);
            }
            out.push(b'e');
            Rc::strong_count(items) > 1
        }
        Py::Dict(items) => {
            out.extend(b"}(");
            for (key, value) in items.iter() {
                write_cpp(key, out, memo);
                write_cpp(value, out, memo);
            }
            out.push(b'u');
            Rc::strong_count(items) > 1
        }
        Py::Tuple(items) => {
            assert_eq!(items.len(), 2, "the C++ writer has pairs only");
            for item in items.iter() {
                write_cpp(item, out, memo);
            }
            out.push(0x86);
            false
        }
    };
    if shared {
        let index = memo.len();
        memo.insert(identity(object).unwrap(), index);
        match u8::try_from(index) {
            Ok(byte) => out.extend([b'q', byte]),
            Err(_) => out.extend([&b"r"[..], &u32::try_from(index).unwrap().to_le_bytes()].concat()),
        }
    }
}
