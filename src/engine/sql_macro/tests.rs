use super::*;

const TEXT: &str = "\
-- Rows, largest first.
--
-- More about them,
-- on two lines.
--
-- Another paragraph.
--
-- @param limit  BIGINT = 10         Rows to
--   return.
-- @param share  DOUBLE = 0.5        A share.
-- @param name   VARCHAR = 'it''s'   A name.
--
-- @column size  BIGINT   Bytes,
--   rounding included.
-- @column name  VARCHAR  A name; NULL without.
SELECT size, name -- not $limit
FROM t
WHERE share > $share AND name <> '$name' AND ($name IS NULL OR name = $name)
LIMIT $limit
";

fn sample() -> SqlMacro {
    SqlMacro::parse("sample", TEXT).unwrap()
}

fn reason(error: &Error) -> String {
    error.to_string()
}

#[test]
fn the_header_is_the_documentation() {
    let sample = sample();
    assert_eq!(sample.summary, "Rows, largest first.");
    assert_eq!(sample.doc, "More about them, on two lines.\nAnother paragraph.");
    assert_eq!(
        sample.params,
        [
            Param {
                name: "limit",
                sql_type: SqlType::Bigint,
                default: Value::Integer(10),
                doc: "Rows to return.".to_owned()
            },
            Param {
                name: "share",
                sql_type: SqlType::Double,
                default: Value::Real(0.5),
                doc: "A share.".to_owned()
            },
            Param {
                name: "name",
                sql_type: SqlType::Varchar,
                default: Value::Text("it's".to_owned()),
                doc: "A name.".to_owned()
            },
        ]
    );
    let columns: Vec<_> = sample.columns.iter().map(|column| (column.name, column.doc.as_str())).collect();
    assert_eq!(columns, [("size", "Bytes, rounding included."), ("name", "A name; NULL without.")]);
    assert!(sample.body.starts_with("SELECT size") && sample.body.ends_with("LIMIT $limit"));
    assert_eq!(sample.dialect, Dialect::Common);
    assert_eq!(sample.signature(), "sample(limit BIGINT = 10, share DOUBLE = 0.5, name VARCHAR = 'it''s')");
    assert_eq!(sample.used_params(), ["share", "name", "limit"]);
}

#[test]
fn a_header_that_cannot_be_read_says_what_is_wrong() {
    for (text, expected) in [
        ("-- A.\n-- @param x TEXT = 1 d\nSELECT 1", "`@param x TEXT = 1 d` is no `name TYPE = default  doc`"),
        (
            "-- A.\n-- @param x BIGINT = y d\nSELECT 1",
            "`@param x BIGINT = y d` is no `name TYPE = default  doc`",
        ),
        ("-- A.\n-- @column x INT d\nSELECT 1", "`@column x INT d` is no `name TYPE  doc`"),
        ("-- A.\n-- @colum x BIGINT d\nSELECT 1", "unknown tag `@colum x BIGINT d`"),
        ("-- A.\n-- @engine duckdb\nSELECT 1", "unknown tag `@engine duckdb`"),
    ] {
        let error = SqlMacro::parse("sample", text).unwrap_err();
        assert_eq!(reason(&error), "query `sql/sample.sql` failed");
        assert_eq!(std::error::Error::source(&error).unwrap().to_string(), expected);
    }
    let only = SqlMacro::parse("sample", "-- A.\n-- @engine datafusion\nSELECT 1").unwrap();
    assert_eq!(only.dialect, Dialect::DataFusion);
}

#[test]
fn values_are_written_where_the_parameters_stand() {
    let sample = sample();
    let values = sample.positional(&[Value::Null, 2_i64.into()]).unwrap();
    let bound = sample.bound(&values);
    assert_eq!(
        bound,
        "SELECT size, name -- not $limit\nFROM t\n\
         WHERE share > 2 AND name <> '$name' AND ('it''s' IS NULL OR name = 'it''s')\nLIMIT -1"
    );
    let view = sample.bound(&sample.unrestricted());
    assert!(view.contains("share > 0.5") && view.ends_with("LIMIT -1"), "{view}");
}

#[test]
fn arguments_that_do_not_fit_are_refused() {
    let sample = sample();
    let named = sample.named(&[("share", 1_i64.into()), ("name", Value::Null)]).unwrap();
    assert_eq!(named, [("limit", Value::Integer(10)), ("share", Value::Integer(1)), ("name", Value::Null)]);
    for (error, expected) in [
        (sample.named(&[("size", Value::Null)]).unwrap_err(), "has no parameter `size`"),
        (sample.named(&[("limit", 0.5.into())]).unwrap_err(), "parameter `limit` is BIGINT, found 0.5"),
        (sample.positional(&["a".into()]).unwrap_err(), "parameter `limit` is BIGINT, found 'a'"),
        (sample.positional(&[(-1_i64).into()]).unwrap_err(), "parameter `limit` is negative: -1"),
        (sample.positional(&vec![Value::Null; 4]).unwrap_err(), "takes at most 3 arguments, found 4"),
    ] {
        assert_eq!(reason(&error), format!("`{}`: {expected}", sample.signature()));
    }
}
