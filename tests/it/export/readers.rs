//! What the readers of other tools say of exports: Python's pickle always, the others on demand, because they come from
//! a registry. `NPUSNAP_TEST_READERS=1` asks for these.

use std::path::Path;
use std::process::Command;

use npusnap::export::{Request, Target, Weight};
use tempfile::tempdir;

use super::{exported, fixture, open};
use crate::oracle::python;

/// Each form of an export of a fixture, in a folder of its own.
fn write_all(name: &str, folder: &Path) {
    let engine = open(&fixture(name));
    let part = Request { events: "20..120".parse().unwrap(), ..Request::default() };
    let peak = Request { weight: Weight::Peak, ..Request::default() };
    for (file, target, request) in [
        ("viz.pickle", Target::MemoryViz, &Request::default()),
        ("part.pickle", Target::MemoryViz, &part),
        ("plain.pickle", Target::Pickle, &Request::default()),
        ("trace.json", Target::Perfetto, &Request::default()),
        ("part.trace.json", Target::Perfetto, &part),
        ("live.speedscope.json", Target::Speedscope, &Request::default()),
        ("peak.speedscope.json", Target::Speedscope, &peak),
        ("live.folded", Target::Folded, &Request::default()),
    ] {
        std::fs::write(folder.join(file), exported(&engine, target, request).0).unwrap();
    }
}

#[test]
fn pythons_own_pickle_loads_what_the_viewer_wants() {
    for name in ["npu_two_devices", "npu_expandable", "cuda_cpp_writer", "npu_all_freed", "legacy_history"] {
        let folder = tempdir().unwrap();
        write_all(name, folder.path());
        python("viewer.py", &[folder.path().to_str().unwrap()]);
    }
}

#[test]
fn readers_from_registries_take_the_exports() {
    if std::env::var_os("NPUSNAP_TEST_READERS").is_none() {
        eprintln!(
            "SKIPPED: readers of other tools come from registries; NPUSNAP_TEST_READERS=1 fetches them"
        );
        return;
    }
    let folder = tempdir().unwrap();
    write_all("cuda_oom_expandable", folder.path());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/oracle/readers.sh");
    let output = Command::new("bash").arg(script).arg(folder.path()).output().unwrap();
    let told = [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(output.status.success(), "{}{}", told[0], told[1]);
    eprintln!("{}", told[0]);
}
