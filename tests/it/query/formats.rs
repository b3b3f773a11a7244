//! How rows are written, and where to.

use super::*;

#[test]
fn rows_come_in_every_format() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT trace_index, action, size, user_metadata FROM traces ORDER BY id";
    assert_eq!(
        done(sql(&dir, &[query])),
        "trace_index  action                        size  user_metadata\n\
         -----------  -------------  -------------------  ----------------\n\
         \x20         0  segment_alloc                 2048  NULL\n\
         \x20         1  alloc                          500  step \"1\", \\nwarm\n\
         \x20         0  oom            9223372036854775807\n"
    );
    assert_eq!(
        done(sql(&dir, &[query, "--format", "json"])),
        r#"[
{"trace_index":0,"action":"segment_alloc","size":2048,"user_metadata":null},
{"trace_index":1,"action":"alloc","size":500,"user_metadata":"step \"1\", \nwarm"},
{"trace_index":0,"action":"oom","size":9223372036854775807,"user_metadata":""}
]
"#
    );
    assert_eq!(
        done(sql(&dir, &[query, "--format", "csv"])),
        "trace_index,action,size,user_metadata\n\
         0,segment_alloc,2048,\n\
         1,alloc,500,\"step \"\"1\"\", \nwarm\"\n\
         0,oom,9223372036854775807,\"\"\n"
    );
}

#[test]
fn the_name_of_the_output_says_its_format() {
    let (place, dir) = store(ROWS);
    let query = "SELECT id, device_index AS device FROM devices ORDER BY id";
    for (name, expected) in [
        ("rows.ndjson", "{\"id\":1,\"device\":0}\n{\"id\":2,\"device\":1}\n"),
        ("rows.md", "| id | device |\n| ---: | ---: |\n| 1 | 0 |\n| 2 | 1 |\n"),
        ("rows.csv", "id,device\n1,0\n2,1\n"),
        ("rows.txt", "id  device\n--  ------\n 1       0\n 2       1\n"),
    ] {
        let file = place.path().join(name);
        assert_eq!(done(sql(&dir, &[query, "-o", file.to_str().unwrap()])), "");
        assert_eq!(fs::read_to_string(file).unwrap(), expected);
    }
    let file = place.path().join("rows.parquet");
    assert_eq!(done(sql(&dir, &[query, "--format", "csv", "-o", file.to_str().unwrap()])), "");
    assert_eq!(fs::read_to_string(file).unwrap(), "id,device\n1,0\n2,1\n");
}

#[test]
fn binary_formats_come_whole_through_a_pipe_and_into_a_file() {
    let (place, dir) = store(ROWS);
    let query = "SELECT value, arrow_cast('a', 'Utf8View') AS text FROM generate_series(1, 20000)";
    let stream = sql(&dir, &[query, "--format", "arrow"]);
    assert_eq!(stream.status.code(), Some(0));
    let reader = arrow::ipc::reader::StreamReader::try_new(stream.stdout.as_slice(), None).unwrap();
    assert_eq!(reader.map(|batch| batch.unwrap().num_rows()).sum::<usize>(), 20_000);
    let file = place.path().join("rows.parquet");
    assert_eq!(done(sql(&dir, &[query, "-o", file.to_str().unwrap()])), "");
    let read = |file: &Path| {
        let file = fs::File::open(file).unwrap();
        let reader = parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
        let types = reader.schema().fields().iter().map(|field| field.data_type().to_string());
        let types: Vec<String> = types.collect();
        (types, reader.build().unwrap().map(|batch| batch.unwrap().num_rows()).sum::<usize>())
    };
    let types = vec!["Int64".to_owned(), "Utf8".to_owned()];
    assert_eq!(read(&file), (types.clone(), 20_000));
    let none = format!("{query} WHERE value < 0");
    assert_eq!(done(sql(&dir, &[&none, "-o", file.to_str().unwrap()])), "");
    assert_eq!(read(&file), (types, 0));
}

#[test]
fn frames_can_be_read_in_every_text_format() {
    let place = tempdir().unwrap();
    let snapshot = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/npu_leak.pickle");
    let run = |query: &str, format: &str| {
        npusnap(&["sql", "--quiet", "--no-cache", snapshot.to_str().unwrap(), query, "--format", format])
            .env("TMPDIR", place.path())
            .output()
            .unwrap()
    };
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
    // The column of text says what the frames are; a frame of this snapshot has just the three fields.
    let text = done(run("SELECT frames_json FROM call_stacks WHERE id = 1", "ndjson"));
    let expected = json(json(&text)["frames_json"].as_str().unwrap());
    assert!(expected.as_array().is_some_and(|frames| !frames.is_empty()));
    let query = "SELECT frames FROM call_stacks WHERE id = 1";
    assert_eq!(json(&done(run(query, "ndjson")))["frames"], expected);
    assert_eq!(json(&done(run(query, "json")))[0]["frames"], expected);
    assert_eq!(json(done(run(query, "table")).lines().nth(2).unwrap()), expected);
    let csv = done(run(query, "csv"));
    let field = csv.lines().nth(1).unwrap().trim_matches('"').replace("\"\"", "\"");
    assert_eq!(json(&field), expected);
    let markdown = done(run(query, "markdown"));
    let cell = markdown.lines().nth(2).unwrap().trim_start_matches("| ").trim_end_matches(" |");
    let rendered = cell.replace("\\_", "_").replace("\\<", "<");
    assert_eq!(json(&rendered), expected);
}

#[test]
fn an_empty_result_is_a_header_or_an_empty_array() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT id, frames FROM call_stacks WHERE id > 1";
    let table = sql(&dir, &[query]);
    assert_eq!(String::from_utf8(table.stdout).unwrap(), "id  frames\n--  ------\n");
    assert_eq!(String::from_utf8(table.stderr).unwrap(), "(0 rows)\n");
    let quiet = npusnap(&["--quiet", "sql", dir.to_str().unwrap(), query]).output().unwrap();
    assert_eq!(done(quiet), "id  frames\n--  ------\n");
    assert_eq!(done(sql(&dir, &[query, "--format", "json"])), "[]\n");
    assert_eq!(done(sql(&dir, &[query, "--format", "ndjson"])), "");
    assert_eq!(done(sql(&dir, &[query, "--format", "csv"])), "id,frames\n");
    assert_eq!(done(sql(&dir, &[query, "--format", "markdown"])), "| id | frames |\n| ---: | --- |\n");
}

#[test]
fn a_file_has_its_name_only_when_it_is_whole() {
    let (place, dir) = store(ROWS);
    let file = place.path().join("rows.json");
    let target = file.to_str().unwrap();
    fs::write(&file, "old").unwrap();
    refused(sql(&dir, &["SELECT size / trace_index FROM traces", "--format", "json", "-o", target]));
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(done(sql(&dir, &["SELECT 1 AS a", "--format", "json", "-o", target])), "");
    assert_eq!(fs::read_to_string(&file).unwrap(), "[\n{\"a\":1}\n]\n");
    assert_eq!(names(place.path()), ["rows.json", "run.npusnap"]);
    let message = refused(sql(&dir, &["SELECT 1", "-o", "/nonexistent/rows.csv"]));
    let expected = "error: `/nonexistent/rows.csv`: cannot create\n  caused by: No such file or directory (os error 2)\n\n\
                    hint: there is no folder `/nonexistent`: make it first, as with `mkdir -p /nonexistent`\n";
    assert_eq!(message, expected);
}

#[test]
fn rows_beyond_the_limit_are_counted() {
    let (_place, dir) = store(ROWS);
    let query = "SELECT value FROM generate_series(1, 30000)";
    let output = sql(&dir, &[query, "--format", "csv", "--max-rows", "2"]);
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "value\n1\n2\n");
    assert_eq!(
        String::from_utf8(output.stderr).unwrap(),
        "29,998 more rows; `--max-rows N` sets how many are shown\n"
    );
    assert_eq!(output.status.code(), Some(0));
    // In a pipe nothing is left out, whatever the format.
    assert_eq!(done(sql(&dir, &[query])).lines().count(), 30_002);
    let quiet = sql(&dir, &[query, "--quiet", "--format", "json", "--max-rows", "0"]);
    assert_eq!(done(quiet), "[]\n");
}

#[test]
fn a_reader_that_went_away_is_no_failure() {
    let (_place, dir) = store(ROWS);
    for format in ["table", "json", "ndjson", "csv", "markdown", "arrow", "parquet"] {
        let query = "SELECT value FROM generate_series(1, 1000000)";
        let mut child = npusnap(&["sql", dir.to_str().unwrap(), query, "--format", format])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdout.take().unwrap().read_exact(&mut [0; 8]).unwrap();
        assert_eq!(done(child.wait_with_output().unwrap()), "");
    }
}
