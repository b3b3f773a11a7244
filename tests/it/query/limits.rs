//! Queries that take too long, too much memory, or that nobody wants to wait for any more.

use super::*;

/// More rows than anyone waits for.
const ENDLESS: &str = "SELECT a.value FROM generate_series(1, 1000000) AS a, generate_series(1, 1000000)";

#[test]
fn a_query_ends_when_its_time_is_over() {
    let (place, dir) = store(ROWS);
    let count = format!("SELECT COUNT(*) FROM ({ENDLESS})");
    let file = place.path().join("rows.csv");
    let file = file.to_str().unwrap();
    for arguments in [&[count.as_str()][..], &[ENDLESS, "-o", file]] {
        let started = Instant::now();
        let said = refused(sql(&dir, &[arguments, &["--timeout", "0.5"]].concat()));
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
        assert_eq!(
            said,
            "error: the query took more than 0.5 s and was stopped\n\n\
             hint: give it more time with `--timeout SECONDS`\n"
        );
    }
    assert_eq!(names(place.path()), ["run.npusnap"]);
    assert_eq!(done(sql(&dir, &["SELECT 1 AS a", "--timeout", "1e18", "--format", "csv"])), "a\n1\n");
    for timeout in ["0", "-1", "soon", "NaN"] {
        let said = refused(sql(&dir, &["SELECT 1", &format!("--timeout={timeout}")]));
        assert!(said.contains("--timeout <SECONDS>"), "{said}");
    }
}

#[test]
fn an_interrupted_query_leaves_nothing_behind() {
    let (place, dir) = store(ROWS);
    for signal in ["-INT", "-TERM"] {
        let file = place.path().join("rows.csv");
        let child = npusnap(&["sql", dir.to_str().unwrap(), ENDLESS, "-o", file.to_str().unwrap()])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // Once rows are being written, the program has been listening for a while.
        let started = Instant::now();
        let is_begun = |dir: &PathBuf| entries(dir).iter().any(|file| fs::metadata(file).unwrap().len() > 0);
        while !hidden(place.path()).iter().any(is_begun) {
            assert!(started.elapsed() < Duration::from_mins(1), "no row is written");
            std::thread::sleep(Duration::from_millis(20));
        }
        let killed = Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
        assert!(killed.success());
        assert_eq!(refused(child.wait_with_output().unwrap()), "error: the query was interrupted\n");
        assert_eq!(names(place.path()), ["run.npusnap"]);
    }
}

#[test]
fn a_sort_that_is_too_large_for_its_memory_goes_to_temporary_files() {
    let (place, dir) = store(ROWS);
    let spill = place.path().join("tmp");
    fs::create_dir(&spill).unwrap();
    let run = |query: &str, limit: &str| {
        npusnap(&["sql", dir.to_str().unwrap(), query, "--format", "csv", "--memory-limit", limit])
            .env("TMPDIR", &spill)
            .output()
            .unwrap()
    };
    // 60,000 rows of 100 bytes and more. 7,919 is no divisor of the prime 60,013: the keys are distinct.
    let sorted = "SELECT value * 7919 % 60013 AS key, repeat('x', 100) AS text
        FROM generate_series(1, 60000) ORDER BY key";
    let plan = done(run(&format!("EXPLAIN ANALYZE {sorted}"), "4MiB"));
    let sort = plan.lines().find(|line| line.contains(" SortExec:")).unwrap();
    assert!(sort.contains("spill_count=") && !sort.contains("spill_count=0,"), "{plan}");
    let rows = done(run(sorted, "4MiB"));
    let keys: Vec<i64> =
        rows.lines().skip(1).map(|row| row.split_once(',').unwrap().0.parse().unwrap()).collect();
    assert_eq!(keys.len(), 60_000);
    assert!(keys.is_sorted_by(|a, b| a < b));
    assert_eq!(names(&spill), <[&str; 0]>::default());
    let said = refused(run(sorted, "100KiB"));
    assert!(said.starts_with("error: the query needs more memory than 100.00 KiB: "), "{said}");
    assert!(
        said.ends_with("\nhint: allow it more with `--memory-limit BYTES`, or ask for less at once\n"),
        "{said}"
    );
    for limit in ["0", "some", "1.5XiB"] {
        let said = refused(run("SELECT 1", limit));
        assert!(said.contains("--memory-limit <BYTES>"), "{said}");
    }
}
