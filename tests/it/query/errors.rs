//! What may not be asked, what is wrong with what was asked, and where.

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use super::*;

#[test]
fn b36_a_query_can_only_read() {
    let (place, dir) = store(ROWS);
    let out = place.path().join("out.csv");
    let csv = place.path().join("in.csv");
    fs::write(&csv, "a\n1\n").unwrap();
    let (out, csv) = (out.display(), csv.display());
    for (statement, kind) in [
        ("DROP TABLE traces", "DROP"),
        ("DELETE FROM traces", "DELETE"),
        ("UPDATE traces SET size = 0", "UPDATE"),
        ("INSERT INTO devices VALUES (9, 9, 'x')", "INSERT"),
        ("WITH a AS (SELECT 1) INSERT INTO devices SELECT 1 FROM a", "INSERT"),
        ("CREATE TABLE t AS SELECT 1", "CREATE"),
        ("create view v AS SELECT 1", "CREATE"),
        ("SELECT 1 INTO t", "what it does"),
        (&format!("CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '{csv}'"), "CREATE"),
        (&format!("COPY (SELECT 1) TO '{out}'"), "COPY"),
        (&format!("EXPLAIN COPY (SELECT 1) TO '{out}'"), "COPY"),
        (&format!("EXPLAIN ANALYZE COPY (SELECT 1) TO '{out}'"), "COPY"),
        ("EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1", "CREATE"),
        ("SET datafusion.execution.batch_size = 1", "SET"),
        ("RESET datafusion.execution.batch_size", "RESET"),
        ("PREPARE p AS SELECT 1", "PREPARE"),
        ("BEGIN", "BEGIN"),
    ] {
        let message = refused(sql(&dir, &[statement]));
        let expected = format!(
            "error: npusnap only reads: {kind} is not allowed\n\n\
             hint: a query begins with SELECT, WITH, EXPLAIN, SHOW or DESCRIBE\n"
        );
        assert_eq!(message, expected, "{statement}");
    }
    for statement in
        ["SELECT 1; SELECT 2", &format!("SELECT * FROM '{csv}'"), &format!("SELECT * FROM \"{csv}\""), ""]
    {
        let message = refused(sql(&dir, &[statement]));
        assert!(message.starts_with("error: "), "{statement}: {message}");
    }
    assert!(!place.path().join("out.csv").exists());
    assert_eq!(done(sql(&dir, &["SELECT COUNT(*) AS n FROM traces", "--format", "csv"])), "n\n3\n");
}

/// What the engine says of them names a node of its plan.
#[test]
fn a_subquery_that_cannot_become_a_join_is_refused_in_words_of_ours() {
    let (_place, dir) = store(ROWS);
    for query in [
        "SELECT d.id, t.id FROM devices AS d, LATERAL (SELECT id FROM traces WHERE device_id = d.id LIMIT 2) AS t",
        "SELECT t.n FROM devices AS d CROSS JOIN LATERAL (SELECT COUNT(*) AS n FROM traces WHERE device_id = d.id) AS t",
        "SELECT t.id FROM devices AS d LEFT JOIN LATERAL (SELECT id FROM traces WHERE device_id = d.id LIMIT 1) AS t ON TRUE",
        "SELECT (SELECT size FROM traces AS t WHERE t.device_id = d.id ORDER BY size LIMIT 1) FROM devices AS d",
        "SELECT d.id FROM devices AS d WHERE d.id IN (SELECT device_id FROM traces AS t WHERE t.id = d.id LIMIT 1)",
        "SELECT (SELECT x.m FROM (SELECT MAX(size) AS m FROM traces AS t WHERE t.device_id > d.id) AS x) FROM devices AS d",
    ] {
        let message = refused(sql(&dir, &[query]));
        let expected = "error: a subquery looks at the row of the query around it in a way that cannot become a join\n\n\
                        hint: join what it reads instead, grouped by what is compared: ";
        assert!(message.starts_with(expected), "{query}: {message}");
    }
    // The hint's own way.
    let query = "SELECT d.id, t.n FROM devices AS d
        JOIN (SELECT device_id, COUNT(*) AS n FROM traces GROUP BY device_id) AS t ON t.device_id = d.id ORDER BY 1";
    assert_eq!(done(sql(&dir, &[query, "--format", "csv"])), "id,n\n1,2\n2,1\n");
    let query = "SELECT t.id FROM devices AS d, LATERAL (SELECT id FROM traces WHERE device_id = d.id) AS t ORDER BY 1";
    assert_eq!(done(sql(&dir, &[query, "--format", "csv"])), "id\n1\n2\n3\n");
}

#[test]
fn an_unknown_name_brings_its_place_and_the_nearest() {
    let (_place, dir) = store(ROWS);
    for (query, message) in [
        (
            "SELECT *\nFROM segment",
            "error: no table or macro called `segment`\n  at line 2, column 6:\n    FROM segment\n         ^\n\n\
             hint: did you mean `segments`?\n",
        ),
        (
            "SELECT * FROM top_allocation(10)",
            "error: no table or macro called `top_allocation`\n  at line 1, column 15:\n    \
             SELECT * FROM top_allocation(10)\n                  ^\n\nhint: did you mean `top_allocations`?\n",
        ),
        (
            "SELECT s.totalsize FROM segments AS s",
            "error: no column called `s.totalsize`\n  at line 1, column 8:\n    \
             SELECT s.totalsize FROM segments AS s\n           ^\n\nhint: did you mean `s.total_size`?\n",
        ),
        (
            "SELECT * FROM devices WHERE device = 1",
            "error: no column called `device`\n  at line 1, column 29:\n    \
             SELECT * FROM devices WHERE device = 1\n                                ^\n\nhint: did you mean \
             `device_index`?\n",
        ),
        (
            "SELECT 1 +\n  sume(size) FROM traces",
            "error: no function called `sume`\n  at line 2, column 3:\n      sume(size) FROM traces\n      ^\n\n\
             hint: did you mean `sum`?\n",
        ),
        (
            "SELECT id FROM traces WHERE action = \"alloc\"",
            "error: no column called `alloc`\n  at line 1, column 38:\n    \
             SELECT id FROM traces WHERE action = \"alloc\"\n                                         ^\n\n\
             hint: a text stands in single quotes: 'alloc'\n",
        ),
        (
            "SELECT id FROM base.traces",
            "error: no table or macro called `base.traces`\n  at line 1, column 16:\n    \
             SELECT id FROM base.traces\n                   ^\n\n\
             hint: schema `base` is a second snapshot: attach it with `--ref SOURCE`\n",
        ),
    ] {
        assert_eq!(refused(sql(&dir, &[query])), message);
    }
    let called = refused(sql(&dir, &["SELECT top_allocations(1)"]));
    assert!(called.starts_with("error: `top_allocations` is no function but a macro\n"), "{called}");
    let retyped = refused(sql(&dir, &["SELECT SUM('a')"]));
    assert!(retyped.contains("'sum'") && !retyped.contains("bug"), "{retyped}");
    let argument = refused(sql(&dir, &["SELECT * FROM top_allocations('ten')"]));
    let expected = "`top_allocations(limit BIGINT = 10, device BIGINT = NULL)`: parameter `limit` is BIGINT, found 'ten'";
    assert!(argument.contains(expected), "{argument}");
    let arguments = refused(sql(&dir, &["SELECT * FROM block_state_dist(1, 2)"]));
    assert!(arguments.contains("takes at most 1 argument, found 2"), "{arguments}");
}

#[test]
fn a_comparison_without_a_second_snapshot_asks_for_one() {
    let (_place, dir) = store(ROWS);
    for (query, mark) in [
        ("SELECT * FROM device_compare", "                  ^"),
        ("SELECT * FROM stack_compare(limit => 3)", "                  ^"),
    ] {
        let name = if query.contains("stack") { "stack_compare" } else { "device_compare" };
        let expected = format!(
            "error: `{name}` compares with a second snapshot, and there is none\n  at line 1, column 15:\n    \
             {query}\n{mark}\n\nhint: add the snapshot to compare with: `--ref OTHER`\n"
        );
        assert_eq!(refused(sql(&dir, &[query])), expected);
    }
    let other = dir.to_str().unwrap();
    let said = refused(sql(&dir, &["SELECT * FROM base.device_compare", "--ref", other]));
    assert!(
        said.ends_with(
            "hint: it sees both snapshots, and has nothing in front of its name: `device_compare`\n"
        ),
        "{said}"
    );
    let rows =
        sql(&dir, &["SELECT COUNT(*) > 0 AS some FROM device_compare", "--ref", other, "--format", "csv"]);
    assert_eq!(done(rows), "some\ntrue\n");
}

#[test]
fn standard_input_is_one_thing_at_most() {
    for (arguments, things) in [
        (&["-", "SELECT 1", "--ref", "-"][..], "both snapshots"),
        (&["-", "-f", "-"], "both the snapshot and the query"),
        (&["x.pickle", "-", "--ref", "-"], "both the snapshot and the query"),
    ] {
        let said = refused(npusnap(&["sql"]).args(arguments).output().unwrap());
        assert!(said.starts_with(&format!("error: standard input: cannot be {things}; ")), "{said}");
    }
}

#[test]
fn a_text_that_is_no_query_is_marked_where_it_stops_to_be_one() {
    let (_place, dir) = store(ROWS);
    for (query, message) in [
        (
            "SELECT 1 FROM traces WHRE 1",
            "line 1, column 27:\n    SELECT 1 FROM traces WHRE 1\n                              ^",
        ),
        ("SELECT (1,\n  2  ", "found: EOF\n  at line 2, column 4:\n      2\n       ^"),
        ("SELECT 'a", "Unterminated string literal\n  at line 1, column 8:\n    SELECT 'a\n           ^"),
        ("SELECT 1; SELECT 2", "error: a query is one statement, here are more\n"),
        (" ; ", "error: the query is empty\n"),
    ] {
        let said = refused(sql(&dir, &[query]));
        assert!(said.contains(message), "{said}");
    }
}

#[test]
fn parameters_have_the_values_that_the_command_line_gives() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT $i - 1 AS i, $r AS r, $t AS t, $n AS n, '$i' AS q
        FROM top_allocations($limit) WHERE stack_id < $big LIMIT $limit";
    let params =
        ["i=-9223372036854775807", "r=0.5", "t=it's; DROP TABLE traces --", "n=null", "limit=1", "big='2'"];
    let arguments = params.iter().flat_map(|param| ["--param", param]);
    let arguments: Vec<&str> = [query, "--format", "json"].into_iter().chain(arguments).collect();
    assert_eq!(
        done(sql(&dir, &arguments)),
        "[\n{\"i\":-9223372036854775808,\"r\":0.5,\"t\":\"it's; DROP TABLE traces --\",\"n\":null,\"q\":\"$i\"}\n]\n"
    );
    let missing = refused(sql(&dir, &["SELECT $limit, $size", "--param", "limit=1"]));
    assert!(
        missing.starts_with("error: the parameter `size` has no value\n  at line 1, column 16:"),
        "{missing}"
    );
    assert!(missing.ends_with("\nhint: give it one with `--param size=VALUE`\n"), "{missing}");
    let unused = refused(sql(&dir, &["SELECT 1", "--param", "limit=1"]));
    assert_eq!(unused, "error: the query has no `$limit` for the parameter `limit`\n");
    for param in ["limit", "=1", "a b=1"] {
        let said = refused(sql(&dir, &["SELECT 1", "--param", param]));
        assert!(said.contains("--param <NAME=VALUE>"), "{said}");
    }
}

#[test]
fn a_macro_takes_its_arguments_by_name_too() {
    let (_place, dir) = store(ROWS);
    let rows = |call: &str| done(sql(&dir, &[&format!("SELECT block_count FROM {call}"), "--format", "csv"]));
    for call in [
        "top_allocations(limit => 1)",
        "top_allocations(device => 0)",
        "top_allocations(device => 0, limit => 1)",
        "top_allocations(1, device => 0)",
        "Top_Allocations(LIMIT => 1, device => NULL)",
    ] {
        assert_eq!(rows(call), "block_count\n1\n", "{call}");
    }
    assert_eq!(rows("top_allocations(device => 1)"), "block_count\n");
    assert_eq!(rows("top_allocations(limit => 0)"), "block_count\n");
    let parameter =
        ["SELECT block_count FROM top_allocations(limit => $n)", "--param", "n=0", "--format", "csv"];
    assert_eq!(done(sql(&dir, &parameter)), "block_count\n");
    for (call, reason) in [
        ("top_allocations(most => 1)", "has no parameter `most`"),
        ("top_allocations(1, limit => 2)", "a parameter has two values"),
        ("top_allocations(limit => 1, 2)", "an argument without a name stands behind one that has one"),
        ("top_allocations(1, NULL, 3, limit => 2)", "takes at most 2 arguments"),
    ] {
        let said = refused(sql(&dir, &[&format!("SELECT 1 FROM {call}")]));
        let signature = "top_allocations(limit BIGINT = 10, device BIGINT = NULL)";
        assert_eq!(said, format!("error: `{signature}`: {reason}\n"), "{call}");
    }
    let said = refused(sql(&dir, &["SELECT 1 FROM generate_series(start => 1)"]));
    assert_eq!(said, "error: `generate_series` takes its arguments in order, without names\n");
}

#[test]
fn a_query_may_begin_with_a_comment() {
    let (_place, dir) = store(ROWS);
    for query in
        ["-- how many\nSELECT 3 AS n", "--how many, as in a=b\n SELECT 3 AS n", "-- a\n-- b\nSELECT 3 AS n"]
    {
        assert_eq!(done(sql(&dir, &[query, "--format", "csv"])), "n\n3\n", "{query}");
        assert_eq!(done(sql(&dir, &["--format", "csv", query])), "n\n3\n", "{query}");
    }
    let place = refused(sql(&dir, &["-- a\nSELECT x"]));
    assert!(place.contains("at line 2, column 8:\n    SELECT x\n"), "{place}");
    let typo = refused(sql(&dir, &["SELECT 1", "--fromat", "csv"]));
    assert!(typo.contains("unexpected argument '--fromat'"), "{typo}");
}

#[test]
fn a_damaged_file_is_named() {
    let (_place, dir) = store(ROWS);
    let blocks = dir.join("blocks.parquet");
    let whole = fs::read(&blocks).unwrap();
    let half = whole[..whole.len() / 2].to_vec();
    let mut zeroed = whole.clone();
    zeroed[4..whole.len() / 2].fill(0);
    for bytes in [half, zeroed, Vec::new()] {
        fs::write(&blocks, bytes).unwrap();
        let expected = format!("error: `{}`: cannot read the Parquet file\n  caused by: ", blocks.display());
        for output in
            [sql(&dir, &["SELECT * FROM blocks"]), npusnap(&["analyze"]).arg(&dir).output().unwrap()]
        {
            let said = refused(output);
            assert!(said.starts_with(&expected) && said.contains("\nhint: the file is damaged: "), "{said}");
        }
    }
    fs::write(&blocks, whole).unwrap();
    assert_eq!(done(sql(&dir, &["SELECT COUNT(*) AS n FROM blocks", "--format", "csv"])), "n\n2\n");
}

/// The file with one byte changed so that the reader of Parquet panics; none where it panics over no such change.
fn panicking(whole: &[u8]) -> Option<Vec<u8>> {
    let place = tempdir().unwrap();
    let path = place.path().join("changed.parquet");
    let read = || {
        let file = fs::File::open(&path).unwrap();
        let reader =
            ParquetRecordBatchReaderBuilder::try_new(file).and_then(ParquetRecordBatchReaderBuilder::build);
        drop(reader.map(|mut reader| reader.all(|batch| batch.is_ok())));
    };
    let footer = u32::from_le_bytes(whole[whole.len() - 8..whole.len() - 4].try_into().unwrap());
    let start = whole.len() - 8 - usize::try_from(footer).unwrap();
    (start..whole.len() - 8).find_map(|at| {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 0x08;
        fs::write(&path, &bytes).unwrap();
        std::panic::catch_unwind(read).is_err().then_some(bytes)
    })
}

#[test]
fn a_file_over_which_the_reader_panics_is_named_like_any_other() {
    let (_place, dir) = store(ROWS);
    let segments = dir.join("segments.parquet");
    let Some(bytes) = panicking(&fs::read(&segments).unwrap()) else {
        eprintln!("SKIPPED: the reader panics over no changed byte");
        return;
    };
    fs::write(&segments, bytes).unwrap();
    let expected = format!(
        "error: `{}`: cannot read the Parquet file\n  caused by: its bytes contradict each other\n\nhint: the file is damaged: ",
        segments.display()
    );
    for output in [sql(&dir, &["SELECT * FROM segments"]), npusnap(&["analyze"]).arg(&dir).output().unwrap()]
    {
        let said = refused(output);
        assert!(said.starts_with(&expected), "{said}");
    }
}
