//! Python reads what the pickle writer writes, and would have written the same bytes.

use std::io::{self, Write};

use npusnap::pickle::writer::{Layout, Writer};

use crate::synth::{checked, python};

/// One of everything: lengths on both sides of a batch, integers on both sides of an opcode, texts on both sides of a
/// frame, shared and equal objects.
fn everything<W: Write>(out: W, layout: Layout) -> io::Result<()> {
    let mut writer = Writer::new(out, layout)?;
    let lengths = [0, 1, 2, 999, 1000, 1001, 2000, 2001, 70_000];
    let integers = [0, 255, 256, 65_535, 65_536, (1 << 31) - 1, 1 << 31, (1 << 63) - 1, 1 << 63, u64::MAX];
    let texts = [0, 1, 2, 255, 256, 65_535, 65_536, 70_000];
    writer.open_list(6)?;
    writer.open_list(u64::try_from(lengths.len()).unwrap())?;
    for length in lengths {
        writer.open_list(length)?;
        for item in 0..length {
            writer.pair(item, 1 << 40)?;
        }
        writer.close()?;
    }
    writer.close()?;
    writer.open_list(u64::try_from(lengths.len()).unwrap())?;
    for length in lengths {
        writer.open_dict(length)?;
        for key in 0..length {
            writer.unsigned(key)?;
            writer.boolean(key % 2 == 0)?;
        }
        writer.close()?;
    }
    writer.close()?;
    writer.open_list(u64::try_from(2 * integers.len()).unwrap())?;
    for integer in integers {
        writer.unsigned(integer)?;
        writer.signed(-integer.min(1 << 62).cast_signed())?;
    }
    writer.close()?;
    writer.open_list(u64::try_from(4 * texts.len()).unwrap())?;
    for length in texts {
        let text = "é".repeat(length / 2) + &"x".repeat(length % 2);
        let symbol = writer.intern(&text);
        writer.text(&text)?;
        writer.symbol(symbol)?;
        writer.text(&text)?;
        writer.symbol(symbol)?;
    }
    writer.close()?;
    writer.open_dict(1)?;
    writer.text("ratio")?;
    writer.float(0.1)?;
    let shared = writer.close_shared()?;
    writer.reference(shared)?;
    writer.close()?;
    writer.finish().map(|_| ())
}

#[test]
fn cpython_writes_the_same_bytes() {
    let Some(python) = python("cpython_writes_the_same_bytes") else { return };
    let folder = tempfile::tempdir().unwrap();
    let script = "import pickle, sys\n\
                  raw = open(sys.argv[1], 'rb').read()\n\
                  again = pickle.dumps(pickle.loads(raw), protocol=raw[1])\n\
                  assert again == raw, [(i, raw[i-20:i+20], again[i-20:i+20]) for i, (a, b) in \
                  enumerate(zip(raw, again)) if a != b][:1]\n";
    for protocol in 2..=5 {
        let path = folder.path().join("all.pickle");
        everything(std::fs::File::create(&path).unwrap(), Layout::CPython(protocol)).unwrap();
        checked(python.clone().as_slice(), &["-c", script, path.to_str().unwrap()]);
    }
}

#[test]
fn python_reads_the_same_objects_in_every_layout() {
    let Some(python) = python("python_reads_the_same_objects_in_every_layout") else { return };
    let folder = tempfile::tempdir().unwrap();
    let paths = [("a", Layout::CPython(4)), ("b", Layout::Jit)].map(|(name, layout)| {
        let path = folder.path().join(name);
        everything(std::fs::File::create(&path).unwrap(), layout).unwrap();
        path.to_str().unwrap().to_owned()
    });
    // The C++ layout keeps the bit pattern of what does not fit into 63 bits.
    let script = "import pickle, sys\n\
                  a, b = (pickle.load(open(path, 'rb')) for path in sys.argv[1:])\n\
                  wrap = lambda n: n - (1 << 64) if n >= 1 << 63 else n\n\
                  a[2] = [wrap(n) for n in a[2]]\n\
                  assert a == b\n";
    checked(python.as_slice(), &["-c", script, &paths[0], &paths[1]]);
}
