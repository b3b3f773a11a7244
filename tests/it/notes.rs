//! What an import says of itself, in both languages.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use npusnap::analysis::{ImportNote, Lang};
use npusnap::engine::{Engine, Options};
use npusnap::store::Store;

use crate::support::analyze::{NPUSNAP, fixture};
use crate::support::pickler::cpython;
use crate::support::pool::{MIB, event, segment, snapshot};
use crate::support::snapshots;

/// The notes of a snapshot, imported with `options`.
fn notes(bytes: &[u8], options: &[&str]) -> Vec<ImportNote> {
    let place = tempfile::tempdir().unwrap();
    let (source, store) = (place.path().join("a.pickle"), place.path().join("a.npusnap"));
    fs::write(&source, bytes).unwrap();
    let mut command = Command::new(NPUSNAP);
    let command = command.args(["--quiet", "ingest", "--no-sqlite", "--salvage"]).args(options);
    let done = command.arg(&source).arg("-o").arg(&store).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let engine = Engine::open(Store::open(&store).unwrap(), Options::default()).unwrap();
    ImportNote::read(&engine).unwrap()
}

/// Events that contradict each other and the final state in every way that has numbers in its note.
fn contradictions() -> Vec<u8> {
    let at = |place: i128| (1 << 30) + place * MIB;
    let one = |action: &str, place: i128| event(action, at(place), MIB);
    let mut events = vec![event("segment_alloc", 1 << 30, 20 * MIB)];
    // Never freed and not there; its address is used again; freed in half; completed without a request; freed twice; freed and
    // there all the same.
    events.extend([one("alloc", 0), one("alloc", 1), one("alloc", 1)]);
    events.extend([one("alloc", 2), one("free_requested", 2)]);
    events.extend([one("alloc", 3), one("free_completed", 3)]);
    events.extend([one("alloc", 4)]);
    events.extend(
        [4, 4].iter().flat_map(|place| [one("free_requested", *place), one("free_completed", *place)]),
    );
    events.extend([one("alloc", 19), one("free_requested", 19), one("free_completed", 19)]);
    // From before the window, with nothing behind it that would prove its size.
    let early = ["free_requested", "free_completed"].map(|action| event(action, at(8), 5 * MIB));
    events.splice(1..1, early);
    let blocks = [(19 * MIB, "inactive"), (MIB, "active_allocated")];
    cpython(&snapshot(vec![segment(0, 1 << 30, "large", &blocks)], vec![events]), 4)
}

fn numbers(text: &str) -> Vec<&str> {
    let mut numbers: Vec<&str> =
        text.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).collect();
    numbers.sort_unstable();
    numbers
}

#[test]
fn what_an_import_notes_has_the_same_numbers_in_both_languages() {
    let mut all = Vec::new();
    for entry in fs::read_dir(fixture("npu_leak.pickle").parent().unwrap()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "pickle") {
            all.extend(notes(&fs::read(&path).unwrap(), &[]));
        }
    }
    let read = |name: &str| fs::read(fixture(name)).unwrap();
    for name in ["npu_two_devices.pickle", "cuda_traces_first.pickle"] {
        let whole = read(name);
        for part in 2..10 {
            // Some are cut before the first row that could be kept.
            let cut = &whole[..whole.len() * part / 10];
            all.extend(notes(cut, &[]));
        }
        all.extend(notes(&whole, &["--device", "0", "--events", "5..90", "--min-size", "4096"]));
    }
    all.extend(notes(&cpython(&snapshots::everything(), 2), &[]));
    all.extend(notes(&contradictions(), &[]));
    let squeezed = zstd::encode_all(&read("npu_leak.pickle")[..60_000], 1).unwrap();
    all.extend(notes(&squeezed, &[]));

    let mut seen = BTreeSet::new();
    for note in &all {
        let (en, zh) = (note.meaning(), note.meaning());
        let (en, zh) = (en.get(Lang::En), zh.get(Lang::Zh));
        assert_eq!(numbers(en), numbers(zh), "{}: {en} / {zh}", note.name);
        assert!(zh.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c)), "{}: {zh}", note.name);
        seen.insert(note.name.as_str());
    }
    for name in [
        "salvaged_to_byte",
        "allocations_without_end",
        "frees_without_completion",
        "completions_without_request",
        "frees_without_alloc",
        "blocks_without_alloc",
        "allocs_on_live_addresses",
        "block_sizes_unproven",
    ] {
        assert!(seen.contains(name), "no {name} among {seen:?}");
    }
}

/// The end of the file, where workspaces stand and are told from the pool, is not there.
#[test]
fn what_is_cut_off_is_not_said_to_be_missing_in_the_recording() {
    let whole = fs::read(fixture("npu_two_devices.pickle")).unwrap();
    let told = |bytes: &[u8], name: &str| {
        let notes = notes(bytes, &[]);
        let note = notes.iter().find(|note| note.name == name);
        note.map(|note| (note.meaning().get(Lang::En).to_owned(), note.meaning().get(Lang::Zh).to_owned()))
    };
    assert_eq!(told(&whole, "no_device_traces"), None);
    let history = whole.windows(13).position(|word| word == b"device_traces").unwrap();
    let cut = &whole[..history];
    let (en, zh) = told(cut, "no_device_traces").unwrap();
    assert!(en.contains("before the damage") && zh.contains("损坏处之前"), "{en} {zh}");
    let (en, zh) = told(cut, "workspace_guess_bytes").unwrap();
    assert!(en.contains("the history that would say so is not before the damage"), "{en}");
    assert!(zh.contains("能够证实的历史不在损坏处之前"), "{zh}");

    let page = |path: &Path, lang: &str| crate::support::analyze::text(path, "fragment", &["--lang", lang]);
    let place = tempfile::tempdir().unwrap();
    let (source, store) = (place.path().join("a.pickle"), place.path().join("a.npusnap"));
    let whole = fs::read(fixture("npu_all_freed.pickle")).unwrap();
    let history = whole.windows(13).position(|word| word == b"device_traces").unwrap();
    fs::write(&source, &whole[..history]).unwrap();
    let mut command = Command::new(NPUSNAP);
    let done =
        command.args(["--quiet", "ingest", "--no-sqlite", "--salvage"]).arg(&source).arg("-o").arg(&store);
    assert!(done.output().unwrap().status.success());
    let (en, zh) = (page(&store, "en"), page(&store, "zh"));
    assert!(en.contains("there is no history that would tell") && !en.contains("recorded history"), "{en}");
    assert!(zh.contains("没有可用的历史，无从分辨"), "{zh}");
}
