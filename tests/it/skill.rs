//! The agent skill: it is complete and valid, what it says of the program is what the program says, its commands run, and
//! the questions of its evals have the answers they have.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use tempfile::tempdir;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn skill(name: &str) -> PathBuf {
    root().join("skill/npusnap").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(skill(name)).unwrap()
}

fn npusnap(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_npusnap")).args(arguments).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = npusnap(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Compares a reference with what the program says; `UPDATE_GOLDEN=1` renews it.
fn is_fresh(name: &str, text: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(skill(name), text).unwrap();
    }
    assert!(read(name) == text, "skill/npusnap/{name} is stale; UPDATE_GOLDEN=1 renews it");
}

fn python(script: &Path, arguments: &[&str]) -> Option<Output> {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("SKIPPED: {}: there is no python3", script.display());
        return None;
    }
    let output = Command::new("python3").arg("-B").arg(script).args(arguments).output().unwrap();
    let told = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
    assert!(output.status.success(), "{}{}", told[0], told[1]);
    Some(output)
}

#[test]
fn its_frontmatter_is_valid_and_it_is_short() {
    let text = read("SKILL.md");
    assert!(text.lines().count() <= 150);
    let rest = text.strip_prefix("---\n").unwrap();
    let (head, _) = rest.split_once("\n---\n").unwrap();
    let name = head.lines().next().unwrap();
    assert_eq!(name, "name: npusnap");
    let description = head.strip_prefix("name: npusnap\ndescription: >-\n").unwrap();
    assert!(description.lines().all(|line| line.starts_with("  ")), "one folded text");
    assert!(description.chars().count() <= 1024);
    for word in [
        "OOM",
        "leak",
        "fragmentation",
        "snapshot",
        "torch_npu",
        "内存泄漏",
        "显存",
        "碎片",
        "峰值",
        "对比",
        "昇腾",
    ] {
        assert!(description.contains(word), "{word}");
    }
}

#[test]
fn its_links_lead_somewhere() {
    for page in ["SKILL.md", "references/methodology.md", "references/templates.md", "references/capture.md"]
    {
        for link in read(page).split("](").skip(1).map(|rest| rest.split(')').next().unwrap()) {
            assert!(skill(page).parent().unwrap().join(link).exists(), "{page}: {link}");
        }
    }
}

#[test]
fn its_references_say_what_the_program_says() {
    let schema = stdout(&["schema", "--format", "markdown"]);
    is_fresh(
        "references/schema.md",
        &format!("# Tables\n\nWritten by `npusnap schema --format markdown`.\n\n{schema}"),
    );
    let thresholds = stdout(&["thresholds"]);
    is_fresh(
        "references/thresholds.md",
        &format!(
            "# Thresholds\n\nWritten by `npusnap thresholds`; `--threshold NAME=VALUE` changes one.\n\n```text\n{thresholds}```\n"
        ),
    );
    let macros: Value = serde_json::from_str(&stdout(&["macros", "--format", "json"])).unwrap();
    let mut text = "# SQL macros\n\nWritten by a test from `npusnap macros --format json`. `npusnap macros NAME` has the \
                    meaning of each column and the SQL. Arguments go by place or by name, as in \
                    `top_allocations(device => 0)`.\n"
        .to_owned();
    for definition in macros.as_array().unwrap() {
        let columns: Vec<&str> = definition["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|column| column["name"].as_str().unwrap())
            .collect();
        write!(
            text,
            "\n## {}\n\n{}{} Columns: {}.\n",
            definition["signature"].as_str().unwrap(),
            definition["summary"].as_str().unwrap(),
            if definition["needs_ref"] == true { " Needs `--ref OTHER`." } else { "" },
            columns.join(", ")
        )
        .unwrap();
    }
    is_fresh("references/macros.md", &text);
}

/// Lines that begin with `npusnap` in the shell blocks of a page.
pub(crate) fn commands(page: &str) -> Vec<String> {
    let mut inside = false;
    let mut found = Vec::new();
    for line in page.lines() {
        if line.starts_with("```") {
            inside = line == "```sh";
        } else if inside && (line.starts_with("npusnap ") || line.contains("| npusnap ")) {
            found.push(line.to_owned());
        }
    }
    found
}

/// A folder with a snapshot under each name that examples use, and `npusnap` on the path.
pub(crate) fn run_in_a_folder_of_snapshots(commands: &[String]) {
    let folder = tempdir().unwrap();
    for (name, fixture) in [
        ("snapshot", "npu_leak"),
        ("after", "npu_leak"),
        ("before", "npu_two_devices"),
        ("oom", "cuda_oom_expandable"),
        ("rank0", "npu_all_freed"),
        ("rank1", "npu_leak"),
        ("huge", "npu_leak"),
    ] {
        let from = root().join("fixtures").join(format!("{fixture}.pickle"));
        fs::copy(from, folder.path().join(format!("{name}.pickle"))).unwrap();
    }
    fs::create_dir(folder.path().join("snapshots")).unwrap();
    fs::copy(folder.path().join("oom.pickle"), folder.path().join("snapshots/rank7.pickle")).unwrap();
    let snapshot = fs::read(folder.path().join("snapshot.pickle")).unwrap();
    fs::write(folder.path().join("broken.pickle"), &snapshot[..snapshot.len() / 2]).unwrap();
    let zipped = fs::File::create(folder.path().join("snapshot.pickle.gz")).unwrap();
    let mut zipped = flate2::write::GzEncoder::new(zipped, flate2::Compression::fast());
    std::io::Write::write_all(&mut zipped, &snapshot).unwrap();
    zipped.finish().unwrap();
    let components =
        "moduleName,curMemSize(MB),memPeakSize(MB)\nHCCL,400.0000,400.0000\nRUNTIME,19.0000,20.0000\n";
    fs::write(folder.path().join("device_0_memUsageInfo_20250102030405.csv"), components).unwrap();
    fs::write(folder.path().join("query.sql"), "SELECT * FROM top_allocations(device => $device)").unwrap();
    stdout(&["ingest", "-q", folder.path().join("snapshot.pickle").to_str().unwrap()]);
    // What pages of the manual and flame graphs are piped into, and where shells look for completions.
    let home = folder.path().join("home");
    for folder in [".local/share/bash-completion/completions", ".zfunc", ".config/fish/completions", "bin"] {
        fs::create_dir_all(home.join(folder)).unwrap();
    }
    for tool in ["man", "flamegraph.pl"] {
        let tool = home.join("bin").join(tool);
        fs::write(&tool, "#!/bin/sh\nexec cat\n").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let binary = Path::new(env!("CARGO_BIN_EXE_npusnap"));
    let folders = [binary.parent().unwrap(), &home.join("bin")].map(|path| path.display().to_string());
    let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap());
    for command in commands {
        let output = Command::new("bash")
            .args(["-euo", "pipefail", "-c", command])
            .current_dir(folder.path())
            .env("PATH", &path)
            .env("HOME", &home)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let found = command.contains("--fail-on") && output.status.code() == Some(1);
        assert!(output.status.success() || found, "{command}\n{told}");
        let to_file = command.contains(" > ") || command.contains(" -o ");
        if command.starts_with("npusnap sql") && !to_file {
            assert!(String::from_utf8_lossy(&output.stdout).lines().count() > 2, "no rows: {command}");
        }
    }
}

#[test]
fn every_command_in_it_runs() {
    let mut found: Vec<String> = Vec::new();
    for page in ["SKILL.md", "references/templates.md", "references/methodology.md", "references/capture.md"]
    {
        found.extend(commands(&read(page)));
    }
    assert!(found.len() > 30, "{}", found.len());
    // What asks for damage finds none in a fixture.
    let (silent, told): (Vec<String>, Vec<String>) =
        found.into_iter().partition(|command| command.contains("severity <> 'info'"));
    run_in_a_folder_of_snapshots(&told);
    assert_eq!(silent.len(), 1);
}

#[test]
fn every_command_of_the_readme_runs() {
    let pages = ["README.md", "README.zh.md"].map(|page| fs::read_to_string(root().join(page)).unwrap());
    let found: BTreeSet<String> = pages.iter().flat_map(|page| commands(page)).collect();
    assert!(found.len() > 30, "{}", found.len());
    run_in_a_folder_of_snapshots(&found.into_iter().collect::<Vec<_>>());
}

/// The examples at the end of a command's help, each as it would be pasted.
fn examples(help: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    for line in lines.take_while(|line| !line.is_empty()) {
        match (line.strip_prefix("    "), found.last_mut()) {
            (Some(rest), Some(last)) => last.extend(["\n", rest]),
            _ => found.push(line.trim_start().to_owned()),
        }
    }
    found
}

#[test]
fn every_command_has_examples_in_its_help_and_they_run() {
    let root = stdout(&["--help"]);
    let names =
        root.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> = names.filter_map(|line| line.split_whitespace().next()).collect();
    assert!(names.contains(&"ingest") && names.contains(&"man"), "{names:?}");
    let mut found = examples(&root);
    assert!(!found.is_empty());
    for name in names.into_iter().filter(|name| *name != "help") {
        let help = stdout(&[name, "--help"]);
        let examples = examples(&help);
        assert!(!examples.is_empty(), "{name}: no examples");
        for example in &examples {
            let first = example.lines().next().unwrap();
            assert!(first.starts_with("npusnap ") && first.len() <= 98, "{name}: wraps: {first}");
        }
        found.extend(examples);
    }
    // The prompt needs a terminal.
    found.retain(|example| !example.contains("# a prompt"));
    run_in_a_folder_of_snapshots(&found);
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let commands =
        ["ingest", "info", "analyze", "sql", "export", "macros", "schema", "thresholds", "synth", "skill"];
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = stdout(&["completions", shell]);
        assert!(commands.iter().all(|command| script.contains(command)), "{shell}");
    }
    let folder = tempdir().unwrap();
    stdout(&["man", "-o", folder.path().to_str().unwrap()]);
    for command in commands {
        let page = fs::read_to_string(folder.path().join(format!("npusnap-{command}.1"))).unwrap();
        assert!(page.contains(".SH SYNOPSIS") && page.contains(".SH OPTIONS"), "{command}");
    }
    assert!(stdout(&["man"]).contains(".TH npusnap"));
}

#[test]
fn the_questions_of_its_evals_have_their_answers() {
    let questions: Value = serde_json::from_str(&read("evals/evals.json")).unwrap();
    let ids: BTreeSet<&str> =
        questions.as_array().unwrap().iter().map(|question| question["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 25);
    let fixtures = root().join("fixtures");
    let arguments = ["--npusnap", env!("CARGO_BIN_EXE_npusnap"), "--fixtures", fixtures.to_str().unwrap()];
    python(&skill("evals/run.py"), &arguments);
}

#[test]
fn it_is_written_out_whole() {
    let folder = tempdir().unwrap();
    let written = stdout(&["skill", "--install", folder.path().to_str().unwrap()]);
    let mut sources = Vec::new();
    let mut folders = vec![skill("")];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().map(|entry| entry.unwrap().path()) {
            match entry.is_dir() {
                true if entry.ends_with("__pycache__") => {}
                true => folders.push(entry),
                false => sources.push(entry),
            }
        }
    }
    assert_eq!(written.lines().count(), sources.len(), "{written}");
    for source in sources {
        let copy = folder.path().join("npusnap").join(source.strip_prefix(skill("")).unwrap());
        assert_eq!(fs::read(copy).unwrap(), fs::read(&source).unwrap(), "{}", source.display());
    }
    assert_eq!(stdout(&["skill"]), read("SKILL.md"));
}

#[test]
fn the_capture_helper_serves_both_modules_and_never_breaks_training() {
    python(&root().join("tests/capture/test_capture.py"), &[]);
}

#[test]
fn step_markers_beside_a_snapshot_become_annotations() {
    let folder = tempdir().unwrap();
    let script = root().join("tests/capture/test_capture.py");
    let Some(output) = python(&script, &["write", folder.path().to_str().unwrap()]) else { return };
    let snapshot = String::from_utf8(output.stdout).unwrap().trim().to_owned();
    let query = "SELECT stage, name, trace_index FROM annotations ORDER BY time_us, stage";
    let rows = stdout(&["sql", &snapshot, query, "--format", "csv", "--no-cache"]);
    // 15 allocations, of which the first four are forgotten: step 2 begins behind six of them, so behind event 1.
    let expected = "stage,name,trace_index\n\
        START,step 0,\nEND,step 0,\nSTART,step 1,\nEND,step 1,1\nSTART,step 2,1\nEND,step 2,4\nSTART,step 3,4\n\
        END,step 3,7\nSTART,step 4,7\nEND,step 4,10\n";
    assert_eq!(rows, expected);
    let notes = "SELECT name, value FROM import_stats WHERE name LIKE 'step%' ORDER BY name";
    let rows = stdout(&["sql", &snapshot, notes, "--format", "csv", "--no-cache"]);
    assert_eq!(rows, "name,value\nstep_markers,10\nstep_markers_before_window,3\n");

    // Places are counted from the last event, so that without it none is known.
    let target = folder.path().join("cut");
    let ingested = ["ingest", &snapshot, "--events", "..9", "--no-sqlite", "-o", target.to_str().unwrap()];
    stdout(&ingested);
    let cut = fs::read_dir(&target).unwrap().next().unwrap().unwrap().path();
    let rows = stdout(&["sql", cut.to_str().unwrap(), notes, "--format", "csv"]);
    assert_eq!(rows, "name,value\nstep_markers,10\nstep_markers_before_window,10\n");

    // What is no marker is counted, and breaks nothing.
    fs::write(
        format!("{snapshot}.steps.jsonl"),
        "no json\n{\"stage\":\"START\",\"device\":0,\"allocations\":-9}\n\n",
    )
    .unwrap();
    let rows = stdout(&["sql", &snapshot, notes, "--format", "csv", "--no-cache"]);
    assert_eq!(rows, "name,value\nstep_markers,1\nstep_markers_before_window,1\nstep_markers_unreadable,1\n");
}
