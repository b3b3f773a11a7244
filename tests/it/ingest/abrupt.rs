//! What an ingest leaves that does not come to its end: the old result or none, never a broken one, and nothing half-made.

use std::io::Read as _;
use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;

use super::*;

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let (dir, source) = folder(1);
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o555)).unwrap();
    let writable = fs::write(dir.path().join("probe"), "").is_ok();
    if writable {
        eprintln!("SKIPPED: permissions do not bind this user");
    } else {
        fails(&ingest(&[&source]), "cannot create a folder for the result");
    }
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn running_out_of_space_leaves_the_old_result() {
    let (dir, source) = folder(50);
    succeeds(&ingest(&[&source]));
    let store = bytes(&dir.path().join("a.npusnap"));
    fs::write(&source, snapshot(6_000)).unwrap();
    // A limit on the size of files fails in the same place as a disk without space, and needs no privilege.
    for blocks in [1, 8, 64, 512] {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$0\" ingest \"$1\"");
        let output = Command::new("sh")
            .args(["-c", &script, env!("CARGO_BIN_EXE_npusnap")])
            .arg(&source)
            .output()
            .unwrap();
        fails(&output, "caused by");
        assert!(stderr(&output).contains("/a.") && !stderr(&output).contains(".tmp-"), "{}", stderr(&output));
        assert!(bytes(&dir.path().join("a.npusnap")) == store);
        assert_eq!(events(&dir.path().join("a.db")), 50);
        assert_eq!(names(dir.path()), ["a.db", "a.npusnap", "a.pickle"]);
    }
}

/// Runs in namespaces of its own, so that the file system goes with it: a small disk with a small result on it, on which a
/// large one then finds no room, or which cannot be written any more.
const SMALL_DISK: &str = r#"
    npusnap=$1 small=$2 large=$3 room=$4 out=$5
    disk=$out/disk
    mkdir "$disk"
    mount -t tmpfs tmpfs "$disk" || exit 77
    "$npusnap" ingest --quiet "$small" -o "$disk" || exit 78
    case $room in
        read-only) mount -o remount,ro "$disk" ;;
        *) mount -o "remount,size=$(($(du -sk "$disk" | cut -f1) + room))k" "$disk" ;;
    esac || exit 77
    "$npusnap" ingest "$large" -o "$disk" 2>"$out/stderr"
    echo $? >"$out/code"
    ls -A "$disk" >"$out/names"
    cp -R "$disk/a.npusnap" "$disk/a.db" "$out"
"#;

#[test]
fn a_full_or_read_only_disk_leaves_the_old_result() {
    let dir = tempdir().unwrap();
    let (small, large) = (dir.path().join("small/a.pickle"), dir.path().join("large/a.pickle"));
    for (path, events) in [(&small, 50), (&large, 6000)] {
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(path, snapshot(events)).unwrap();
    }
    succeeds(&ingest(&[&small, Path::new("-o"), &dir.path().join("old")]));
    let old = bytes(&dir.path().join("old/a.npusnap"));
    for room in ["read-only", "0", "8", "24", "64", "200", "400"] {
        let out = dir.path().join(room);
        fs::create_dir(&out).unwrap();
        let run = Command::new("unshare")
            .args(["-rm", "sh", "-c", SMALL_DISK, "sh", env!("CARGO_BIN_EXE_npusnap")])
            .args([&small, &large, Path::new(room), &out])
            .output();
        match run {
            Ok(output) if output.status.success() => {}
            // Not every system lets its users make namespaces.
            other => {
                eprintln!("SKIPPED: no disk to fill: {other:?}");
                return;
            }
        }
        let said = fs::read_to_string(out.join("stderr")).unwrap();
        assert_eq!(fs::read_to_string(out.join("code")).unwrap(), "2\n", "{said}");
        let reasons: &[&str] =
            if room == "read-only" { &["Read-only file system"] } else { &["No space left", "disk is full"] };
        assert!(reasons.iter().any(|reason| said.contains(reason)), "{room}: {said}");
        assert!(said.contains("/disk") && said.contains("\nhint: "), "{room}: {said}");
        assert_eq!(fs::read_to_string(out.join("names")).unwrap(), "a.db\na.npusnap\n", "{room}");
        assert!(bytes(&out.join("a.npusnap")) == old, "{room}");
        assert_eq!(events(&out.join("a.db")), 50);
    }
}

/// As [`SMALL_DISK`]: the snapshot alone fills its disk, as after a dump; then nothing else has a place either.
const FILLED_DISK: &str = r#"
    npusnap=$1 snapshot=$2 out=$3
    disk=$out/disk
    mkdir "$disk"
    mount -t tmpfs tmpfs "$disk" || exit 77
    cp "$snapshot" "$disk/a.pickle" || exit 78
    mount -o "remount,size=$(($(du -sk "$disk" | cut -f1) + 4))k" "$disk" || exit 77
    for cache in "$out/cache" "$disk/none"; do
        XDG_CACHE_HOME=$cache "$npusnap" sql --format csv "$disk/a.pickle" "SELECT count(*) AS events FROM traces"
        ls -A "$disk"
    done >"$out/stdout" 2>"$out/stderr"
    TMPDIR=$disk XDG_CACHE_HOME=$disk/none "$npusnap" sql "$disk/a.pickle" "SELECT 1" 2>"$out/nowhere"
    echo $? >"$out/code"
"#;

#[test]
fn a_full_disk_is_no_obstacle_while_another_has_room() {
    let dir = tempdir().unwrap();
    let source = dir.path().join("a.pickle");
    fs::write(&source, snapshot(2000)).unwrap();
    let run = Command::new("unshare")
        .args(["-rm", "sh", "-c", FILLED_DISK, "sh", env!("CARGO_BIN_EXE_npusnap")])
        .args([&source, dir.path()])
        .output();
    if !run.as_ref().is_ok_and(|output| output.status.success()) {
        eprintln!("SKIPPED: no disk to fill: {run:?}");
        return;
    }
    let read = |name: &str| fs::read_to_string(dir.path().join(name)).unwrap();
    let counted = "events\n2000\na.pickle\n";
    assert_eq!(read("stdout"), format!("{counted}{counted}none\n"), "{}", read("stderr"));
    assert_eq!(names(&dir.path().join("cache/npusnap")).len(), 1);
    assert_eq!(read("code"), "2\n");
    assert!(
        read("nowhere").contains("No space left") && read("nowhere").contains("`TMPDIR`"),
        "{}",
        read("nowhere")
    );
}

/// A folder with a result that was made of another state of its snapshot.
struct Outdated {
    dir: TempDir,
    source: PathBuf,
    old: BTreeMap<String, Vec<u8>>,
    new: BTreeMap<String, Vec<u8>>,
    /// How long a run takes.
    whole: Duration,
    random: u64,
}

const SMALL: i64 = 30;
const LARGE: i64 = 2500;

impl Outdated {
    fn new() -> Self {
        let (dir, source) = folder(SMALL);
        succeeds(&ingest(&[&source]));
        let old = bytes(&dir.path().join("a.npusnap"));
        fs::write(&source, snapshot(LARGE)).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        let begin = Instant::now();
        succeeds(&ingest(&[&source, Path::new("-o"), &elsewhere]));
        let whole = begin.elapsed();
        let new = bytes(&elsewhere.join("a.npusnap"));
        fs::remove_dir_all(elsewhere).unwrap();
        Self { dir, source, old, new, whole, random: 0x2545_f491 }
    }

    /// Starts a run and waits for a random part of the time that it takes.
    fn begin(&mut self) -> Child {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let share = f64::from(u32::try_from(self.random >> 32).unwrap()) / f64::from(u32::MAX);
        let run =
            npusnap().arg("ingest").arg(&self.source).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
        thread::sleep(self.whole.mul_f64(share * 1.1));
        run.unwrap()
    }

    /// The old or the new result stands there, whole; if it is the new one, the old one is made again.
    fn check(&self) {
        let store = self.dir.path().join("a.npusnap");
        let found: BTreeMap<String, Vec<u8>> =
            bytes(&store).into_iter().filter(|(name, _)| name != "source.json").collect();
        let is_old =
            self.old.iter().all(|(name, content)| name == "source.json" || found.get(name) == Some(content));
        assert!(is_old || found == self.new, "the folder is neither the old nor the new result");
        assert!([SMALL, LARGE].contains(&events(&self.dir.path().join("a.db"))));
        if !is_old {
            fs::write(&self.source, snapshot(SMALL)).unwrap();
            succeeds(&ingest(&[&self.source]));
            fs::write(&self.source, snapshot(LARGE)).unwrap();
        }
    }

    fn names(&self) -> Vec<String> {
        names(self.dir.path())
    }
}

#[test]
fn a_kill_at_any_of_100_moments_leaves_whole_results() {
    let mut outdated = Outdated::new();
    let mut killed = 0;
    for _ in 0..100 {
        let mut run = outdated.begin();
        run.kill().unwrap();
        killed += usize::from(!run.wait().unwrap().success());
        outdated.check();
    }
    assert!(killed >= 20, "only {killed} of the runs were killed before their end");
    succeeds(&ingest(&[&outdated.source]));
    assert_eq!(outdated.names(), ["a.db", "a.npusnap", "a.pickle"], "leftovers of killed runs");
}

fn signal(name: &str, run: &Child) {
    assert!(Command::new("kill").args(["-s", name, &run.id().to_string()]).status().unwrap().success());
}

#[test]
fn a_run_that_is_told_to_end_takes_its_temporaries_with_it() {
    let mut outdated = Outdated::new();
    let mut ended = 0;
    for (name, number) in [("INT", 2), ("TERM", 15), ("HUP", 1)].into_iter().cycle().take(30) {
        let run = outdated.begin();
        signal(name, &run);
        let output = run.wait_with_output().unwrap();
        if !output.status.success() {
            ended += 1;
            assert_eq!((output.status.signal(), stderr(&output).as_str()), (Some(number), ""));
        }
        assert_eq!(outdated.names(), ["a.db", "a.npusnap", "a.pickle"], "after {name}");
        outdated.check();
    }
    assert!(ended >= 5, "only {ended} of the runs ended before their end");
}

/// A run that waits for a snapshot, once it has begun to make a result in `dir`.
fn waiting(dir: &Path, command: &mut Command) -> Child {
    let mut run = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let begin = Instant::now();
    while names(dir).is_empty() {
        assert!(begin.elapsed() < Duration::from_mins(1), "nothing is begun");
        if run.try_wait().unwrap().is_some() {
            let mut said = String::new();
            run.stderr.unwrap().read_to_string(&mut said).unwrap();
            panic!("{said}");
        }
        thread::sleep(Duration::from_millis(5));
    }
    run
}

#[test]
fn a_run_that_waits_for_its_input_ends_when_it_is_told_to() {
    let dir = tempdir().unwrap();
    let ingest: &[&str] = &["ingest", "-", "-o", dir.path().to_str().unwrap()];
    for arguments in [ingest, &["analyze", "-"], &["info", "-"], &["sql", "-", "SELECT 1"]] {
        let run = waiting(dir.path(), npusnap().args(arguments).env("TMPDIR", dir.path()));
        signal("TERM", &run);
        let output = run.wait_with_output().unwrap();
        assert_eq!((output.status.signal(), stderr(&output).as_str()), (Some(15), ""), "{arguments:?}");
        assert_eq!(names(dir.path()), <[&str; 0]>::default(), "{arguments:?}");
    }
}

#[test]
fn a_signal_that_the_caller_took_away_stays_away() {
    let dir = tempdir().unwrap();
    let script = "trap '' HUP INT; exec \"$0\" ingest - -o \"$1\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_npusnap")]).arg(dir.path());
    let mut run = waiting(dir.path(), &mut command);
    for name in ["HUP", "INT"] {
        signal(name, &run);
    }
    thread::sleep(Duration::from_millis(100));
    assert!(run.try_wait().unwrap().is_none() && !names(dir.path()).is_empty());
    signal("TERM", &run);
    assert_eq!(run.wait().unwrap().signal(), Some(15));
    assert_eq!(names(dir.path()), <[&str; 0]>::default());
}

#[test]
fn temporary_folders_of_killed_runs_are_cleared_by_the_next() {
    let dir = tempdir().unwrap();
    let mut run = waiting(dir.path(), npusnap().args(["info", "-"]).env("TMPDIR", dir.path()));
    let second = waiting(dir.path(), npusnap().args(["info", "-"]).env("TMPDIR", dir.path()));
    run.kill().unwrap();
    run.wait().unwrap();
    assert!(!names(dir.path()).is_empty());
    signal("TERM", &second);
    second.wait_with_output().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/npu_oom.pickle");
    let next = npusnap().args(["info", "--no-cache"]).arg(source).env("TMPDIR", dir.path()).output();
    succeeds(&next.unwrap());
    assert_eq!(names(dir.path()), <[&str; 0]>::default());
}

#[test]
fn runs_for_the_same_target_all_succeed_and_one_result_stands() {
    let (dir, source) = folder(2000);
    for _ in 0..3 {
        let children: Vec<_> = (0..6)
            .map(|_| {
                npusnap()
                    .arg("ingest")
                    .arg(&source)
                    .stdout(Stdio::null())
                    .stderr(Stdio::piped())
                    .spawn()
                    .unwrap()
            })
            .collect();
        for child in children {
            succeeds(&child.wait_with_output().unwrap());
        }
        assert_eq!(names(dir.path()), ["a.db", "a.npusnap", "a.pickle"]);
        assert_eq!(names(&dir.path().join("a.npusnap")).len(), TABLES.len() + 1);
        assert_eq!(events(&dir.path().join("a.db")), 2000);
        assert!(Store::open(&dir.path().join("a.npusnap")).is_ok());
    }
}
