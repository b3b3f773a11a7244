//! The files of `sql/` keep their own rules, and `npusnap macros` and `npusnap schema` say what there is.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::process::{Command, Output};

use npusnap::analysis::chart;
use npusnap::analysis::{
    Contributor, CounterChange, CourseRow, Device, DeviceFragmentation, DeviceOverview, ExpansionCause,
    FactPair, FieldPresence, FreeBlocks, ImportNote, LastEvent, Mark, OomContext, OomEvent, OomGrowth,
    OomPreceding, OutsidePool, Peak, Point, PoolOverview, Recording, SegmentChange, SegmentFragmentation,
    SegmentGrowth, SegmentStack, StackChange, StackGrowth, StepOverview, StepRow, TableCount, TimelineStep,
};
use npusnap::engine::{self, BASE, Dialect, Engine, Options, SqlMacro, Value};
use npusnap::schema::TABLES;

fn catalog() -> Vec<SqlMacro> {
    engine::catalog().unwrap()
}

fn empty_engine() -> Engine {
    let mut engine = Engine::in_memory(HashMap::new(), Options::default()).unwrap();
    engine.attach_in_memory(BASE, HashMap::new()).unwrap();
    engine
}

/// The statement in upper case, without comments and without what stands in quotes.
fn bare(body: &str) -> String {
    let code: Vec<&str> = body.lines().map(|line| line.split("--").next().unwrap_or_default()).collect();
    code.join("\n").split('\'').step_by(2).collect::<Vec<_>>().join("''").to_ascii_uppercase()
}

#[test]
fn every_file_is_listed_and_documented() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let files: BTreeSet<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let listed: BTreeSet<String> = catalog().iter().map(|definition| definition.name.to_owned()).collect();
    assert_eq!(files, listed);
    for definition in catalog() {
        let name = definition.name;
        assert!(definition.summary.ends_with('.'), "{name}: the first line is one sentence");
        assert!(!definition.columns.is_empty(), "{name}: no column is documented");
        let docs = definition.columns.iter().map(|column| (column.name, &column.doc));
        for (item, doc) in docs.chain(definition.params.iter().map(|param| (param.name, &param.doc))) {
            assert!(doc.ends_with('.'), "{name}: `{item}` is documented by `{doc}`");
        }
    }
}

#[test]
fn columns_are_documented_in_order_with_the_type_they_have() {
    let engine = empty_engine();
    for definition in catalog() {
        let schema = engine.relation_schema(definition.name).unwrap();
        let planned: Vec<(String, String)> = schema
            .fields()
            .iter()
            .map(|field| (field.name().clone(), engine::sql_type(field.data_type())))
            .collect();
        let documented: Vec<(String, String)> = definition
            .columns
            .iter()
            .map(|column| (column.name.to_owned(), column.sql_type.as_str().to_owned()))
            .collect();
        assert_eq!(planned, documented, "{}", definition.name);
    }
}

#[test]
fn parameters_are_declared_and_used() {
    for definition in catalog() {
        let declared: BTreeSet<_> = definition.params.iter().map(|param| param.name).collect();
        let used: BTreeSet<_> = definition.used_params().into_iter().collect();
        assert_eq!(declared, used, "{}", definition.name);
    }
}

#[test]
fn only_private_views_are_kept() {
    for definition in catalog().iter().filter(|definition| definition.kept) {
        assert!(definition.is_private() && definition.params.is_empty(), "{}", definition.name);
    }
}

#[test]
fn files_use_only_what_stands_above_them() {
    let catalog = catalog();
    for (place, definition) in catalog.iter().enumerate() {
        let body = bare(definition.body).to_lowercase();
        let words: Vec<&str> = body.split(|c: char| c.is_whitespace() || c == '(').collect();
        for pair in words.windows(2).filter(|pair| matches!(pair[0], "from" | "join")) {
            let named = catalog.iter().position(|other| other.name == pair[1]);
            assert!(named.is_none_or(|named| named < place), "{} uses {}", definition.name, pair[1]);
        }
    }
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    for table in TABLES {
        connection.execute(&npusnap::schema::create_table(table), []).unwrap();
    }
    for (name, sql) in engine::exported_views().unwrap() {
        connection.execute(&format!("CREATE VIEW {name} AS {sql}"), []).unwrap();
        connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
    }
}

#[test]
fn statements_follow_the_style() {
    for definition in catalog() {
        let name = definition.name;
        let code = bare(definition.body);
        assert!(!code.contains(';'), "{name}: one statement, no semicolon");
        assert!(
            definition.body.lines().all(|line| line.chars().count() <= 100),
            "{name}: a line is too long"
        );
        let words: Vec<&str> =
            code.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
        for forbidden in ["LIKE", "ILIKE", "GREATEST", "LEAST", "RANGE", "FOLLOWING"] {
            assert!(!words.contains(&forbidden), "{name}: {forbidden} differs between the engines");
        }
        // A star behind a value is a product.
        for (before, _) in code.match_indices('*') {
            let before = code[..before].trim_end();
            let all = ["SELECT", "DISTINCT", ",", "."].iter().any(|end| before.ends_with(end));
            assert!(!all, "{name}: no SELECT *");
        }
        for quotient in code.split('/').skip(1) {
            assert!(quotient.trim_start().starts_with("NULLIF("), "{name}: a division without NULLIF");
        }
        // Without an order the frame is the whole partition in both engines.
        for window in code.split(" OVER (").skip(1) {
            let mut depth = 1;
            let end = window.find(|character| {
                depth += match character {
                    '(' => 1,
                    ')' => -1,
                    _ => 0,
                };
                depth == 0
            });
            let window = &window[..end.unwrap_or(window.len())];
            assert_eq!(window.contains("ORDER BY"), window.contains("ROWS BETWEEN"), "{name}: ROWS frames");
        }
        for keyword in ["select", "from", "where", "join", "on", "and", "group", "order", "as", "case", "sum"]
        {
            let code = definition.body.lines().map(|line| line.split("--").next().unwrap_or_default());
            let mut words = code.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
            assert!(!words.any(|word| word == keyword), "{name}: `{keyword}` in lower case");
        }
    }
}

/// A view that SQLite cannot parse makes the whole database unreadable, so the views stay within SQLite 3.25, which
/// old Python installations carry: the release that brought window functions.
#[test]
fn exported_views_are_understood_by_sqlite_3_25() {
    let since = [
        ("FILTER (", "3.30 for aggregates"),
        ("FILTER(", "3.30 for aggregates"),
        ("NULLS FIRST", "3.30"),
        ("NULLS LAST", "3.30"),
        ("IS DISTINCT FROM", "3.39"),
        ("IS NOT DISTINCT FROM", "3.39"),
        ("RIGHT JOIN", "3.39"),
        ("FULL JOIN", "3.39"),
        ("FULL OUTER JOIN", "3.39"),
        ("MATERIALIZED", "3.35"),
        ("->", "3.38"),
        ("GROUPS", "3.28"),
        ("EXCLUDE", "3.28"),
        ("SQRT(", "3.35, and only where it was built in"),
        ("IIF(", "3.32"),
    ];
    for (name, sql) in engine::exported_views().unwrap() {
        let code = bare(&sql).split_whitespace().collect::<Vec<_>>().join(" ");
        for (syntax, version) in since {
            assert!(!code.contains(syntax), "{name}: {syntax} needs SQLite {version}");
        }
        assert!(!code.contains('$'), "{name}: a view has no parameters");
    }
    let common = |it: &&SqlMacro| it.dialect == Dialect::Common && !it.needs_base;
    assert_eq!(engine::exported_views().unwrap().len(), catalog().iter().filter(common).count());
}

#[test]
fn typed_rows_have_the_columns_that_relations_have() {
    let engine = empty_engine();
    engine.contract::<DeviceOverview>().unwrap();
    engine.contract::<CounterChange>().unwrap();
    engine.contract::<DeviceFragmentation>().unwrap();
    engine.contract::<ExpansionCause>().unwrap();
    engine.contract::<FactPair>().unwrap();
    engine.contract::<FreeBlocks>().unwrap();
    engine.contract::<Device>().unwrap();
    engine.contract::<LastEvent>().unwrap();
    engine.contract::<OomContext>().unwrap();
    engine.contract::<OomEvent>().unwrap();
    engine.contract::<OomGrowth>().unwrap();
    engine.contract::<OomPreceding>().unwrap();
    engine.contract::<PoolOverview>().unwrap();
    engine.contract::<SegmentChange>().unwrap();
    engine.contract::<SegmentFragmentation>().unwrap();
    engine.contract::<StackChange>().unwrap();
    engine.contract::<TimelineStep>().unwrap();
    engine.contract::<ImportNote>().unwrap();
    engine.contract::<TableCount>().unwrap();
    engine.contract::<OutsidePool>().unwrap();
    engine.contract::<FieldPresence>().unwrap();
    engine.contract::<Recording>().unwrap();
    engine.contract::<StackGrowth>().unwrap();
    engine.contract::<SegmentGrowth>().unwrap();
    engine.contract::<SegmentStack>().unwrap();
    engine.contract::<StepOverview>().unwrap();
    engine.contract::<Peak>().unwrap();
    engine.contract::<Contributor>().unwrap();
    engine.contract::<Point>().unwrap();
    engine.contract::<Mark>().unwrap();
    engine.contract::<chart::GrowthRow>().unwrap();
    engine.contract::<chart::HeldRow>().unwrap();
    engine.contract::<chart::LayoutRow>().unwrap();
    engine.contract::<chart::MomentRow>().unwrap();
    engine.contract::<chart::StackRow>().unwrap();
    engine.contract::<CourseRow>().unwrap();
    engine.contract::<StepRow>().unwrap();
}

fn npusnap(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_npusnap")).args(arguments).output().unwrap()
}

fn stdout(arguments: &[&str]) -> String {
    let output = npusnap(arguments);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!((output.status.code(), said.as_str()), (Some(0), ""));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn macros_are_listed_without_the_private_ones() {
    let text = stdout(&["macros"]);
    for definition in catalog() {
        let signature = definition.signature();
        assert_eq!(text.lines().any(|line| line == signature), !definition.is_private(), "{signature}");
    }
    assert!(
        text.contains("top_allocations(limit BIGINT = 10, device BIGINT = NULL)\n    Call stacks"),
        "{text}"
    );
    let json: serde_json::Value = serde_json::from_str(&stdout(&["macros", "--format", "json"])).unwrap();
    let names: Vec<_> =
        json.as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    let public = catalog().into_iter().filter(|definition| !definition.is_private());
    assert_eq!(names, public.map(|definition| definition.name).collect::<Vec<_>>());
    let top = json.as_array().unwrap().iter().find(|entry| entry["name"] == "top_allocations").unwrap();
    assert_eq!(top["params"][0]["default"], "10");
    assert!(text.contains("\n    SELECT * FROM peak_contributors(limit => 10)\n"), "{text}");
}

#[test]
fn a_macro_that_compares_two_snapshots_says_so() {
    let json: serde_json::Value = serde_json::from_str(&stdout(&["macros", "--format", "json"])).unwrap();
    for entry in json.as_array().unwrap() {
        let name = entry["name"].as_str().unwrap();
        let compares = name.ends_with("_compare");
        assert_eq!(entry["needs_ref"], compares, "{name}");
        assert_eq!(
            stdout(&["macros", name]).contains("Needs a second snapshot: `--ref OTHER`."),
            compares,
            "{name}"
        );
    }
}

#[test]
fn a_macro_shows_its_arguments_columns_and_statement() {
    let text = stdout(&["macros", "block_state_dist"]);
    assert!(
        text.starts_with("block_state_dist(device BIGINT = NULL)\n\nBlocks by device and state"),
        "{text}"
    );
    assert!(
        text.contains("\narguments:\n  device  BIGINT   Only this device_index; NULL for all.\n"),
        "{text}"
    );
    assert!(
        text.contains("\n  requested_size  BIGINT   Bytes asked for in those blocks; NULL for"),
        "{text}"
    );
    assert!(text.ends_with("ORDER BY d.device_index, s.state\n"), "{text}");
    let markdown = stdout(&["macros", "block_state_dist", "--format", "markdown"]);
    assert!(markdown.starts_with("## block_state_dist\n"), "{markdown}");
}

#[test]
fn tables_are_shown_with_every_column() {
    let all = stdout(&["schema"]);
    for table in TABLES {
        let one = stdout(&["schema", table.name]);
        assert!(all.contains(&one), "{}", table.name);
        for column in table.columns {
            assert!(one.contains(&format!("\n  {} ", column.name)), "{}.{}", table.name, column.name);
        }
    }
    let json: serde_json::Value =
        serde_json::from_str(&stdout(&["schema", "call_stacks", "--format", "json"])).unwrap();
    assert_eq!(json["columns"][0]["name"], "id");
    assert_eq!(json["columns"][0]["type"], "BIGINT");
}

#[test]
fn capitals_in_the_name_of_a_macro_or_table_do_not_matter() {
    for (command, name, other) in
        [("macros", "block_state_dist", "Block_State_Dist"), ("schema", "traces", "TRACES")]
    {
        assert_eq!(stdout(&[command, other]), stdout(&[command, name]));
    }
}

#[test]
fn an_unknown_macro_or_table_brings_the_nearest() {
    for (arguments, message) in [
        (
            ["macros", "top_alocations"],
            "error: no macro called `top_alocations`\n\nhint: did you mean `top_allocations`?\n",
        ),
        (["schema", "trace"], "error: no table called `trace`\n\nhint: did you mean `traces`?\n"),
        (["schema", "qqq"], "error: no table called `qqq`\n"),
    ] {
        let output = npusnap(&arguments);
        assert_eq!(output.status.code(), Some(2));
        assert_eq!(String::from_utf8(output.stderr).unwrap(), message);
    }
}

/// A view takes no argument, so that the number of failures whose pool is laid out stands in two files.
#[test]
fn as_many_failures_are_explained_as_are_laid_out() {
    let body = |name: &str| engine::catalog().unwrap().into_iter().find(|it| it.name == name).unwrap();
    let laid_out =
        body("segments_at").params.iter().find(|param| param.name == "newest").unwrap().default.clone();
    let Value::Integer(laid_out) = laid_out else { panic!("{laid_out:?}") };
    assert!(body("oom_context").body.contains(&format!("e.newest <= {laid_out}\n")), "{laid_out}");
}
