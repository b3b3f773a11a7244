//! `npusnap synth`: the fixtures are what it writes, and Python finds the truth in what it writes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The command that starts Python, or `None` with a loud word where there is none.
pub(crate) fn python(test: &str) -> Option<Vec<String>> {
    let found = Command::new("python3").arg("--version").stdout(Stdio::null()).status();
    if found.is_ok_and(|status| status.success()) {
        return Some(vec!["python3".to_owned()]);
    }
    eprintln!("SKIPPED {test}: no python3 to check against");
    None
}

/// Runs a command that must succeed.
pub(crate) fn checked(command: &[String], arguments: &[&str]) {
    let output = Command::new(&command[0]).args(&command[1..]).args(arguments).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {stderr}");
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn synth(folder: &Path, arguments: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npusnap"));
    command.current_dir(folder).arg("synth").args(arguments).output().unwrap()
}

fn synth_ok(folder: &Path, arguments: &[&str]) {
    let output = synth(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stdout.is_empty() || arguments.contains(&"-"), "{arguments:?} wrote to standard output");
}

/// Arguments of the commands that `fixtures/README.md` lists.
fn fixture_commands() -> Vec<Vec<String>> {
    let readme = fs::read_to_string(root().join("fixtures/README.md")).unwrap();
    readme
        .lines()
        .filter_map(|line| line.strip_prefix("npusnap synth "))
        .map(|arguments| arguments.split_whitespace().map(str::to_owned).collect())
        .collect()
}

fn files(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    entries.map(|name| name.into_string().unwrap()).filter(|name| name != "README.md").collect()
}

#[test]
fn fixtures_are_what_their_commands_write() {
    let folder = tempfile::tempdir().unwrap();
    let made = folder.path().join("fixtures");
    fs::create_dir(&made).unwrap();
    for command in fixture_commands() {
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        synth_ok(folder.path(), &arguments);
    }
    let kept = root().join("fixtures");
    assert_eq!(files(&kept), files(&made));
    for name in files(&kept) {
        let same = fs::read(kept.join(&name)).unwrap() == fs::read(made.join(&name)).unwrap();
        assert!(same, "fixtures/{name} is not what its command in fixtures/README.md writes");
    }
}

#[test]
fn fixtures_stay_small() {
    let folder = root().join("fixtures");
    let sizes: Vec<u64> =
        files(&folder).iter().map(|name| fs::metadata(folder.join(name)).unwrap().len()).collect();
    assert!(sizes.iter().sum::<u64>() < 512_000, "{} bytes", sizes.iter().sum::<u64>());
}

#[test]
fn python_finds_the_truth_in_every_fixture() {
    let Some(python) = python("python_finds_the_truth_in_every_fixture") else { return };
    let script = root().join("tests/oracle/check_synth.py");
    let folder = root().join("fixtures");
    for name in files(&folder) {
        if let Some(stem) = name.strip_suffix(".pickle") {
            let truth = folder.join(format!("{stem}.truth.json"));
            let paths =
                [script.as_path(), &folder.join(&name), &truth].map(|path| path.to_str().unwrap().to_owned());
            checked(&python, &paths.each_ref().map(String::as_str));
        }
    }
}

#[test]
fn python_finds_the_truth_whatever_the_flags() {
    let Some(python) = python("python_finds_the_truth_whatever_the_flags") else { return };
    let script = root().join("tests/oracle/check_synth.py");
    let folder = tempfile::tempdir().unwrap();
    let base =
        ["-q", "-o", "a.pickle", "--truth", "a.json", "--steps", "6", "--layers", "2", "--n-stacks", "50"];
    let variants = [
        "--leak --oom --devices 2",
        "--expandable --oom --capacity 250 --devices 2",
        "--expandable --empty-cache-every 1 --context alloc",
        "--max-entries 500 --devices 3 --leak",
        "--max-entries 300 --expandable --empty-cache-every 2",
        "--oom --capacity 180",
        "--context state --max-entries 1",
        "--context alloc --order traces-first",
        "--stacks all --depth 20 --idle-devices 2",
        "--teardown --leak --empty-cache-every 3",
        "--addr-base 0xffffff0000000000",
        "--pool-id --padding 0",
        "--no-pool-id --padding 32 --seed 77",
    ];
    for dialect in ["npu", "cuda", "legacy"] {
        for (number, variant) in variants.iter().enumerate() {
            let protocol = ["2", "4", "5"][number % 3];
            let mut arguments = [&base[..], &["--dialect", dialect, "--protocol", protocol]].concat();
            arguments.extend(variant.split(' '));
            synth_ok(folder.path(), &arguments);
            let [script, snapshot, truth] =
                [script.as_path(), &folder.path().join("a.pickle"), &folder.path().join("a.json")]
                    .map(|path| path.to_str().unwrap().to_owned());
            checked(&python, &[&script, &snapshot, &truth]);
            if dialect != "legacy" {
                // Without workspaces, which the C++ pickler does not know, both picklers hold equal objects.
                arguments.push("--no-workspace");
                synth_ok(folder.path(), &arguments);
                let twin = folder.path().join("b.pickle").to_str().unwrap().to_owned();
                fs::rename(&snapshot, &twin).unwrap();
                arguments.extend(["--writer", "cpp"]);
                synth_ok(folder.path(), &arguments);
                checked(&python, &[&script, &snapshot, &truth, &twin]);
            }
        }
    }
}

#[test]
fn the_same_arguments_give_the_same_bytes_and_another_seed_others() {
    let folder = tempfile::tempdir().unwrap();
    let make = |name: &str, seed: &str| {
        synth_ok(folder.path(), &["-q", "-o", name, "--steps", "2", "--layers", "1", "--seed", seed]);
        fs::read(folder.path().join(name)).unwrap()
    };
    assert_eq!(make("a", "5"), make("b", "5"));
    assert_ne!(make("a", "5"), make("b", "6"));
}

#[test]
fn the_truth_costs_nothing_but_time() {
    let folder = tempfile::tempdir().unwrap();
    synth_ok(folder.path(), &["-q", "-o", "a", "--steps", "2"]);
    synth_ok(folder.path(), &["-q", "-o", "b", "--steps", "2", "--truth", "c"]);
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), fs::read(folder.path().join("b")).unwrap());
}

#[test]
fn standard_output_takes_the_snapshot_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let piped = synth(folder.path(), &["-o", "-", "--steps", "2"]);
    assert!(piped.status.success());
    synth_ok(folder.path(), &["-o", "a", "--steps", "2"]);
    assert_eq!(piped.stdout, fs::read(folder.path().join("a")).unwrap());
    assert!(String::from_utf8_lossy(&piped.stderr).starts_with("wrote "));
}

#[test]
fn quiet_says_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let output = synth(folder.path(), &["--quiet", "-o", "a", "--steps", "1"]);
    assert!(output.status.success());
    assert!(output.stdout.is_empty() && output.stderr.is_empty());
}

#[test]
fn a_failed_run_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let output = synth(folder.path(), &["-o", "missing/a.pickle"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(message.contains("`missing/a.pickle`"), "{message}");
    // An address space that ends before the program does.
    let output = synth(folder.path(), &["-o", "a.pickle", "--addr-base", "0xffffffffffe00000"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn arguments_that_make_no_sense_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in [
        &["-o", "a", "--dialect", "legacy", "--writer", "cpp"][..],
        &["-o", "a", "--steps", "1", "--events", "1"],
        &["-o", "a", "--protocol", "3"],
        &["-o", "a", "--devices", "0"],
        &["-o", "a", "--addr-base", "0xz"],
        &["-o", "a", "--truth", "a"],
        &[],
    ] {
        assert_eq!(synth(folder.path(), arguments).status.code(), Some(2), "{arguments:?}");
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_device_is_written_and_a_link_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    synth_ok(folder.path(), &["-q", "-o", "/dev/null", "--steps", "1"]);
    assert!(!fs::metadata("/dev/null").unwrap().is_file());
    fs::write(folder.path().join("target"), "old").unwrap();
    std::os::unix::fs::symlink("target", folder.path().join("link")).unwrap();
    synth_ok(folder.path(), &["-q", "-o", "link", "--steps", "1"]);
    assert!(fs::symlink_metadata(folder.path().join("link")).unwrap().is_symlink());
    assert!(fs::read(folder.path().join("target")).unwrap().starts_with(b"\x80\x04"));
}

#[test]
fn the_snapshot_is_readable_like_any_other_file() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    synth_ok(folder.path(), &["-q", "-o", "a.pickle", "--steps", "1"]);
    let plain = folder.path().join("plain");
    fs::write(&plain, "").unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
    assert_eq!(mode(&folder.path().join("a.pickle")), mode(&plain));
    assert_eq!(folder.path().join("a.pickle").extension(), Some(OsStr::new("pickle")));
}
