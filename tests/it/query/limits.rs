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

/// Whether SIGINT is ignored here and so in all that is started from here, as in what a shell runs in the background.
fn interrupts_are_ignored() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask >> 1 & 1 == 1)
}

#[test]
fn an_interrupted_query_leaves_nothing_behind() {
    let (place, dir) = store(ROWS);
    for signal in ["-INT", "-TERM"] {
        if signal == "-INT" && interrupts_are_ignored() {
            eprintln!("SKIPPED: whoever runs the tests has taken Ctrl-C away from them");
            continue;
        }
        let file = place.path().join("rows.csv");
        let arguments =
            ["sql", dir.to_str().unwrap(), ENDLESS, "--timeout", "90", "-o", file.to_str().unwrap()];
        let child = npusnap(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
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

#[test]
fn a_value_that_an_argument_makes_huge_is_refused_before_it_is_made() {
    let (_place, dir) = store(ROWS);
    for (function, call) in [
        ("repeat", "length(repeat('x', 2000000000))"),
        ("repeat", "length(repeat(action, 2000000000)) FROM traces"),
        ("lpad", "length(lpad('x', 2000000000, 'y'))"),
        ("rpad", "length(rpad(action, 2000000000)) FROM traces"),
        ("range", "cardinality(range(0, 100000000000))"),
        ("range", "cardinality(range(100000000000))"),
        ("generate_series", "cardinality(generate_series(100000000000, 0, -1))"),
        (
            "range",
            "cardinality(range(TIMESTAMP '1970-01-01', TIMESTAMP '1970-01-02', INTERVAL '1 microsecond'))",
        ),
        ("array_repeat", "cardinality(array_repeat(1, 2000000000))"),
        ("array_resize", "cardinality(array_resize([1], 2000000000))"),
        ("replace", "length(replace(repeat('a', 1000000), 'a', repeat('x', 1000000)))"),
        ("regexp_replace", "length(regexp_replace(repeat('a', 1000000), 'a', repeat('x', 1000000), 'g'))"),
    ] {
        let said = refused(sql(&dir, &[&format!("SELECT {call}")]));
        let expected = format!(
            "error: the query needs more memory than 2.00 GiB: the values of `{function}` could take "
        );
        assert!(said.starts_with(&expected), "{call}: {said}");
        assert!(said.ends_with("ask for less at once\n"), "{call}: {said}");
    }
    // What is in proportion is as it was; the functions and their other names are the engine's.
    let query =
        "SELECT repeat('ab', 3) AS a, lpad('x', 3, '-') AS b, rpad('x', 3) || '|' AS c, range(1, 4) AS d,
        list_repeat(7, 2) AS e, replace('aXa', 'X', 'b') AS f, regexp_replace('aXa', '[X]', 'b') AS g,
        range(DATE '2024-01-31', DATE '2024-03-31', INTERVAL '1 month') AS h, repeat('x', -1) AS i";
    assert_eq!(
        done(sql(&dir, &[query, "--format", "ndjson"])),
        "{\"a\":\"ababab\",\"b\":\"--x\",\"c\":\"x  |\",\"d\":[1,2,3],\"e\":[7,7],\"f\":\"aba\",\"g\":\"aba\",\
         \"h\":[\"2024-01-31\",\"2024-02-29\"],\"i\":\"\"}\n"
    );
}

#[test]
fn values_that_outgrow_the_machine_in_steps_are_stopped() {
    if !Path::new("/proc/self/status").exists() {
        eprintln!("SKIPPED: this system does not tell how much memory a program has");
        return;
    }
    let (_place, dir) = store(ROWS);
    // Each step is eight times the one before: 8 GB in the end, and every single text is one that a query may have.
    let steps: Vec<String> = (1..=5)
        .map(|step| {
            format!("t{step} AS (SELECT s || s || s || s || s || s || s || s AS s FROM t{})", step - 1)
        })
        .collect();
    let query = format!(
        "WITH t0 AS (SELECT repeat('x', 250000) AS s FROM generate_series(1, 200)), {} SELECT MAX(s) FROM t5",
        steps.join(", ")
    );
    let said = refused(sql(&dir, &[&query, "--memory-limit", "16MiB"]));
    assert!(said.starts_with("error: "), "{said}");
}

#[test]
fn a_query_that_is_planned_for_long_ends_when_its_time_is_over() {
    let (_place, dir) = store(ROWS);
    let started = Instant::now();
    let sum = vec!["1"; 3900].join(" + ");
    let said = refused(sql(&dir, &[&format!("SELECT {sum}"), "--timeout", "0.2"]));
    assert!(said.starts_with("error: the query took more than 0.2 s and was stopped\n"), "{said}");
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn a_text_that_would_make_too_deep_a_plan_is_refused() {
    let (_place, dir) = store(ROWS);
    let hint = "\nhint: put long lists of values behind IN, and what repeats in a WITH clause\n";
    let sum = format!("SELECT {}", vec!["1"; 20_000].join(" + "));
    let said = refused(sql(&dir, &[&sum]));
    let counts = "error: the query has 19,999 operators, brackets and words such as AND; 4,000 is the most\n";
    assert!(said.starts_with(counts) && said.ends_with(hint), "{said}");
    let place = tempdir().unwrap();
    let file = place.path().join("q.sql");
    fs::write(&file, format!("SELECT 1 IN (1{})", ", 1234567890".repeat(100_000))).unwrap();
    let said = refused(sql(&dir, &["-f", file.to_str().unwrap()]));
    assert!(said.starts_with("error: the query has 1,200,015 bytes; 1,048,576 is the most\n"), "{said}");
    let tables = format!("SELECT 1 FROM devices AS a{}", ", devices".repeat(256));
    let said = refused(sql(&dir, &[&tables]));
    assert_eq!(said, "error: the query reads more than 256 tables and macros\n");
    let list: Vec<String> = (0..10_000).map(|id| id.to_string()).collect();
    let long = format!("SELECT COUNT(*) AS n FROM traces WHERE id IN ({})", list.join(", "));
    assert_eq!(done(sql(&dir, &[&long, "--format", "csv"])), "n\n3\n");
}

#[test]
fn a_query_file_without_an_end_is_given_up() {
    let (_place, dir) = store(ROWS);
    let said = refused(sql(&dir, &["-f", "/dev/zero"]));
    assert_eq!(said, "error: `/dev/zero`: has 16.00 MiB and does not end, so it is no query\n");
    let place = tempdir().unwrap();
    let file = place.path().join("q.sql");
    fs::write(&file, b"SELECT '\xff'").unwrap();
    let said = refused(sql(&dir, &["-f", file.to_str().unwrap()]));
    assert_eq!(said, format!("error: `{}`: is no text in UTF-8, so it is no query\n", file.display()));
}
