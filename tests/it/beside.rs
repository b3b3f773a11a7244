//! Files beside a snapshot: what the driver counts by component, in both stores and in the analyses; and a kept store
//! that knows when such a file changed.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::{TempDir, tempdir};

const NAME: &str = "oom_snapshot_12_20250102030405.pickle";
const USAGE: &str = "device_0_memUsageInfo_20250102030406.csv";
/// The pool is 1 GiB: HCCL holds more than it, and the program 24 MiB beside it.
const COMPONENTS: &str = "moduleName,curMemSize(MB),memPeakSize(MB)\n\
    APP,1048.0000,1100.0000\nHCCL,2048.5000,3000.0000\nRUNTIME,300.0000,300.0000\n";

fn npusnap(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_npusnap"));
    command.args(arguments).current_dir(folder).output().unwrap()
}

fn stdout(folder: &Path, arguments: &[&str]) -> String {
    let output = npusnap(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn json(folder: &Path, arguments: &[&str]) -> Value {
    serde_json::from_str(&stdout(folder, arguments)).unwrap()
}

/// A folder with a snapshot of a job that ran out of memory.
fn folder() -> TempDir {
    let folder = tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/npu_oom.pickle");
    fs::copy(fixture, folder.path().join(NAME)).unwrap();
    folder
}

fn write(folder: &TempDir, name: &str, text: &str) {
    fs::write(folder.path().join(name), text).unwrap();
}

const ROWS: &str = "SELECT component, bytes, peak_bytes, sample_count FROM module_memory ORDER BY component";

#[test]
fn components_of_the_dump_are_rows_of_both_stores() {
    let folder = folder();
    write(&folder, USAGE, COMPONENTS);
    // Another dump's, another rank's, and a form that only the profiler writes, which also knows of a device not here.
    write(
        &folder,
        "device_0_memUsageInfo_20250102060000.csv",
        "moduleName,curMemSize(MB),memPeakSize(MB)\nAPP,1,1\n",
    );
    write(&folder, "device_3_memUsageInfo_20250102030405.csv", COMPONENTS);
    write(
        &folder,
        "npu_module_mem_20250102070000.csv",
        "Device_id,Component,Timestamp(us),Total Reserved(KB),Device\n0,DVPP,10\t,64,NPU:0\n0,DVPP,20\t,32,NPU:0\n5,DVPP,1,1,NPU:5\n",
    );
    let expected = "component,bytes,peak_bytes,sample_count\n\
        APP,1098907648,1153433600,1\nDVPP,32768,65536,2\nHCCL,2148007936,3145728000,1\nRUNTIME,314572800,314572800,1\n";
    stdout(folder.path(), &["ingest", "-q", NAME]);
    for source in [NAME, "oom_snapshot_12_20250102030405.npusnap", "oom_snapshot_12_20250102030405.db"] {
        assert_eq!(stdout(folder.path(), &["sql", source, ROWS, "--format", "csv"]), expected, "{source}");
        let notes = "SELECT name, value FROM import_stats WHERE name LIKE 'module_memory%' ORDER BY name";
        assert_eq!(
            stdout(folder.path(), &["sql", source, notes, "--format", "csv"]),
            "name,value\nmodule_memory_of_other_devices,4\nmodule_memory_of_other_times,1\nmodule_memory_rows,4\n"
        );
    }
}

#[test]
fn overview_names_who_holds_memory_outside_the_pool() {
    let folder = folder();
    let without = json(folder.path(), &["analyze", NAME, "--format", "json"]);
    assert!(without["result"]["devices"][0].get("outside_pool").is_none());
    write(&folder, USAGE, COMPONENTS);
    let with = json(folder.path(), &["analyze", NAME, "--format", "json"]);
    let outside = &with["result"]["devices"][0]["outside_pool"];
    // 24 MiB of APP beyond the pool of 1 GiB, 2048.5 MiB and 300 MiB.
    assert_eq!(with["result"]["devices"][0]["reserved"], 1 << 30);
    assert_eq!(outside["bytes"], 25_165_824 + 2_148_007_936_i64 + 314_572_800);
    assert_eq!(outside["largest"], "HCCL");
    assert_eq!(outside["components"][2]["component"], "APP");
    assert_eq!(outside["components"][2]["outside_bytes"], 25_165_824);
    let findings = with["findings"].as_array().unwrap();
    let finding = findings.iter().find(|finding| finding["rule"] == "overview/outside_pool").unwrap();
    assert!(
        finding["message"].as_str().unwrap().contains("HCCL 2.00 GiB, RUNTIME 300.00 MiB, APP 24.00 MiB")
    );

    let page = folder.path().join("report.html");
    stdout(folder.path(), &["analyze", NAME, "--mode", "all", "-o", page.to_str().unwrap()]);
    let page = fs::read_to_string(page).unwrap();
    assert!(
        page.contains("Memory outside the pool, by component") && page.contains("内存池之外的占用（按组件）")
    );
    assert!(page.contains("HCCL"));
}

#[test]
fn what_the_driver_counts_outside_the_pool_explains_a_failure() {
    let folder = folder();
    let cause = || json(folder.path(), &["analyze", NAME, "--mode", "oom", "--format", "json"]);
    assert_eq!(cause()["result"]["events"][0]["cause"], "capacity");
    write(&folder, USAGE, COMPONENTS);
    let told = cause();
    let event = &told["result"]["events"][0];
    assert_eq!(
        (&event["cause"], &event["outside_pool"]["largest"]),
        (&"outside_pool".into(), &"HCCL".into())
    );
    assert!(event["advice"][0].as_str().unwrap().contains("HCCL_BUFFSIZE"));
    assert_eq!(told["findings"][0]["rule"], "oom/outside_pool");
    assert!(told["findings"][0]["message"].as_str().unwrap().contains("HCCL 2.00 GiB"));
    // Less than the pool, but more than was asked for: the pool is what fills the device, and the rest is named too.
    write(&folder, USAGE, "moduleName,curMemSize(MB),memPeakSize(MB)\nHCCL,400.0000,400.0000\n");
    let event = &cause()["result"]["events"][0];
    assert_eq!(event["cause"], "capacity");
    assert!(
        event["advice"].as_array().unwrap().last().unwrap().as_str().unwrap().contains("HCCL (400.00 MiB)")
    );
}

#[test]
fn a_kept_store_is_made_again_when_a_file_beside_the_snapshot_appears_changes_or_goes() {
    let folder = folder();
    let count = |table: &str| {
        let query = format!("SELECT count(*) AS n FROM {table}");
        stdout(folder.path(), &["sql", NAME, &query, "--format", "csv"])
    };
    let made = || {
        fs::metadata(folder.path().join("oom_snapshot_12_20250102030405.npusnap"))
            .unwrap()
            .modified()
            .unwrap()
    };
    assert_eq!(count("module_memory"), "n\n0\n");
    let first = made();
    assert_eq!(count("annotations"), "n\n0\n");
    assert_eq!(made(), first, "nothing changed");
    write(&folder, USAGE, COMPONENTS);
    assert_eq!(count("module_memory"), "n\n3\n");
    write(&folder, USAGE, &format!("{COMPONENTS}GE,1.0000,1.0000\n"));
    assert_eq!(count("module_memory"), "n\n4\n");
    let marks = format!("{NAME}.steps.jsonl");
    write(&folder, &marks, "{\"stage\":\"START\",\"name\":\"step 0\",\"device\":0,\"allocations\":3}\n");
    assert_eq!(count("annotations"), "n\n1\n");
    fs::remove_file(folder.path().join(&marks)).unwrap();
    fs::remove_file(folder.path().join(USAGE)).unwrap();
    assert_eq!((count("annotations"), count("module_memory")), ("n\n0\n".to_owned(), "n\n0\n".to_owned()));
}

#[test]
fn whatever_is_wrong_with_a_file_beside_the_snapshot_the_snapshot_is_read() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    let notes =
        "SELECT name, severity, value FROM import_stats WHERE name LIKE 'module_memory%' ORDER BY name";
    let told = || stdout(folder.path(), &["sql", NAME, notes, "--format", "csv", "--no-cache"]);
    for (bytes, expected) in [
        (b"\x80\x02}q\x00.".to_vec(), "module_memory_files_unreadable,data_loss,1\n"),
        (b"a;b;c\n1;2;3\n".to_vec(), "module_memory_files_unreadable,data_loss,1\n"),
        (b"".to_vec(), "module_memory_files_unreadable,data_loss,1\n"),
        (
            b"moduleName,curMemSize(MB),memPeakSize(MB)\n\xff\xfe,1,1\n\"HCCL,1,1\n\n".to_vec(),
            "module_memory_lines_unreadable,data_loss,1\nmodule_memory_rows,info,1\n",
        ),
        (vec![b'x'; 1 << 20], "module_memory_files_unreadable,data_loss,1\n"),
    ] {
        fs::write(path(USAGE), bytes).unwrap();
        assert_eq!(told(), format!("name,severity,value\n{expected}"));
    }
    // 1 GiB, of which the disk holds nothing.
    File::create(path(USAGE)).unwrap().set_len(1 << 30).unwrap();
    assert_eq!(told(), "name,severity,value\nmodule_memory_files_unreadable,data_loss,1\n");
    fs::remove_file(path(USAGE)).unwrap();
    // Neither a folder nor a pipe that nobody writes to is read.
    fs::create_dir(path(USAGE)).unwrap();
    for name in [format!("{NAME}.steps.jsonl"), "npu_module_mem.csv".to_owned()] {
        assert!(Command::new("mkfifo").arg(path(&name)).status().unwrap().success());
    }
    assert_eq!(told(), "name,severity,value\n");
}
