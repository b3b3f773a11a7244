//! `+`, `-`, `*` and the minus sign on integers: what does not fit is an error that names the operation, wherever in a
//! query it stands, and everything else is what it was.

use super::sums::{engine, rows};
use super::*;

const MOST: &str = "9223372036854775807";

/// Two columns: a number and its square root.
const VALUES: &str = "(VALUES (1, 1), (4, 2), (9223372030926249001, 3037000499), (NULL, 0)) AS t(x, y)";

fn cause(engine: &Engine, sql: &str) -> String {
    match rows(engine, sql) {
        Ok(rows) => panic!("{sql}: {rows}"),
        Err(error) => std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default(),
    }
}

#[test]
fn what_does_not_fit_is_named_wherever_it_stands() {
    for partitions in [1, 4] {
        let engine = engine(partitions);
        for (sql, operation) in [
            // Constants are worked out while the query is planned, some of them only after others.
            (format!("SELECT {MOST} + 1"), "9223372036854775807 + 1"),
            (format!("SELECT {MOST} + 1 - 1"), "9223372036854775807 + 1"),
            (format!("SELECT -{MOST} - 2"), "-9223372036854775807 - 2"),
            (format!("SELECT a * 2 FROM (SELECT {MOST} AS a)"), "9223372036854775807 * 2"),
            (format!("SELECT -(-{MOST} - 1)"), "0 - -9223372036854775808"),
            ("SELECT CAST(100 AS TINYINT) + CAST(28 AS TINYINT)".to_owned(), "100 + 28"),
            (format!("SELECT * FROM (VALUES ({MOST} + 1))"), "9223372036854775807 + 1"),
            // Columns with a constant, on either side, and with one another.
            (format!("SELECT x + {MOST} FROM {VALUES}"), "1 + 9223372036854775807"),
            (format!("SELECT {MOST} + x FROM {VALUES}"), "9223372036854775807 + 1"),
            (format!("SELECT -{MOST} - x FROM {VALUES} WHERE y > 1"), "-9223372036854775807 - 4"),
            (format!("SELECT x * x FROM {VALUES}"), "9223372030926249001 * 9223372030926249001"),
            ("SELECT a * b FROM (VALUES (3, 5), (4294967296, 2147483648)) AS t(a, b)".to_owned(), "4294967296 * 2147483648"),
            ("SELECT a - b FROM (VALUES (3, 5), (-4611686018427387905, 4611686018427387904)) AS t(a, b)".to_owned(), "-4611686018427387905 - 4611686018427387904"),
            ("SELECT a + b FROM (VALUES (3, 5), (4611686018427387904, 4611686018427387904)) AS t(a, b)".to_owned(), "4611686018427387904 + 4611686018427387904"),
            (format!("SELECT x + x FROM {VALUES}"), "9223372030926249001 + 9223372030926249001"),
            // Filters, groups, orders, windows, inputs of aggregates, joins and subqueries.
            (format!("SELECT y FROM {VALUES} WHERE x + x > 0"), "9223372030926249001 + 9223372030926249001"),
            (format!("SELECT COUNT(*) FROM {VALUES} GROUP BY x * 3"), "9223372030926249001 * 3"),
            (format!("SELECT MAX(x * 3) FROM {VALUES}"), "9223372030926249001 * 3"),
            (format!("SELECT y FROM {VALUES} ORDER BY x * 3"), "9223372030926249001 * 3"),
            (format!("SELECT MAX(y) OVER (PARTITION BY x * 3) FROM {VALUES}"), "9223372030926249001 * 3"),
            (
                format!("SELECT MAX(y) FILTER (WHERE x * 3 > 0) OVER (ORDER BY y) FROM {VALUES}"),
                "9223372030926249001 * 3",
            ),
            (
                format!("SELECT 1 FROM {VALUES} JOIN (VALUES (6), (7)) AS u(z) ON x * 3 > z"),
                "9223372030926249001 * 3",
            ),
            (
                format!("SELECT 1 FROM {VALUES} JOIN (VALUES (6), (7)) AS u(z) ON x * 3 = z"),
                "9223372030926249001 * 3",
            ),
            (format!("SELECT (SELECT MAX(x) * 3 FROM {VALUES})"), "9223372030926249001 * 3"),
            (
                format!("SELECT 1 FROM {VALUES} WHERE EXISTS (SELECT 1 FROM (VALUES (3)) AS u(z) WHERE x * 3 = z)"),
                "9223372030926249001 * 3",
            ),
            (
                "WITH RECURSIVE n AS (SELECT 1 AS n UNION ALL SELECT n * 10 FROM n WHERE n > 0) SELECT MAX(n) FROM n"
                    .to_owned(),
                "1000000000000000000 * 10",
            ),
        ] {
            let cause = cause(&engine, &sql);
            assert!(cause.starts_with(&format!("{operation} does not fit in ")), "{sql}: {cause}");
        }
    }
}

#[test]
fn what_fits_is_exact_and_columns_keep_their_names() {
    let engine = engine(2);
    for (sql, expected) in [
        (format!("SELECT {MOST} - 1 + 1, -{MOST} - 1, 3037000499 * 3037000499"), "9223372036854775807,-9223372036854775808,9223372030926249001\n"),
        (format!("SELECT x + 1, 1 - x, y * y - x, -x FROM {VALUES} ORDER BY y"), ",,,\n2,0,0,-1\n5,-3,0,-4\n9223372030926249002,-9223372030926249000,0,-9223372030926249001\n"),
        // Just as much as fits, on both sides of zero.
        ("SELECT a + b, a - b, -a - b FROM (VALUES (4611686018427387903, 4611686018427387903), (4611686018427387904, 4611686018427387903)) AS t(a, b) ORDER BY a".to_owned(), "9223372036854775806,0,-9223372036854775806\n9223372036854775807,1,-9223372036854775807\n"),
        ("SELECT a * b, -a * b FROM (VALUES (3037000499, 2), (2147483648, 2147483648), (-2147483647, 4294967296)) AS t(a, b) ORDER BY b".to_owned(), "6074000998,-6074000998\n4611686018427387904,-4611686018427387904\n-9223372032559808512,9223372032559808512\n"),
        // A value that a NULL hides is none: the sum of the last row would not fit.
        ("SELECT CASE WHEN y > 0 THEN x END + 9223372036854775807 AS s FROM (VALUES (0, 1), (5, 0)) AS t(x, y)".to_owned(), "9223372036854775807\n\"\"\n"),
        (
            format!("SELECT x, ROW_NUMBER() OVER (PARTITION BY y - y ORDER BY 5 - y) FROM {VALUES} WHERE y > 0 ORDER BY y"),
            "1,3\n4,2\n9223372030926249001,1\n",
        ),
        (format!("SELECT SUM(y + 1), x + 1 FROM {VALUES} GROUP BY x + 1 HAVING x + 1 < 9 ORDER BY x + 1"), "2,2\n3,5\n"),
        (format!("SELECT CASE WHEN y > 9 THEN 0 ELSE x + x END FROM {VALUES} WHERE y > 0 ORDER BY y"), "2\n8\n0\n"),
        ("SELECT CAST(255 AS TINYINT UNSIGNED) - CAST(255 AS TINYINT UNSIGNED), 1.5 + 1, 2 * 0.5".to_owned(), "0,2.5,1.0\n"),
        ("SELECT DATE '2024-02-28' + INTERVAL '2 days', DATE '2024-03-01' - DATE '2024-02-28'".to_owned(), "2024-03-01,2\n"),
        ("SELECT 5 LIMIT 2 - 1 OFFSET 1 - 1".to_owned(), "5\n"),
    ] {
        assert_eq!(rows(&engine, &sql).unwrap(), expected, "{sql}");
    }
    let batches =
        engine.query("SELECT size + 1, - size, MAX(size * 2 - 1) FROM traces GROUP BY size").unwrap();
    let names: Vec<&str> = batches.schema().fields().iter().map(|field| field.name().as_str()).collect();
    let expected = ["traces.size + Int64(1)", "(- traces.size)", "max(traces.size * Int64(2) - Int64(1))"];
    assert_eq!(names, expected);
}

#[test]
fn a_limit_or_an_argument_beyond_64_bits_is_an_error_and_not_another_one() {
    let (_place, dir) = store(ROWS);
    for (query, expression, column) in [
        ("SELECT id FROM traces LIMIT 9223372036854775807 * 2 + 4", "9223372036854775807 * 2 + 4", 29),
        ("SELECT id FROM traces OFFSET 9223372036854775808", "9223372036854775808", 30),
        ("SELECT id FROM traces FETCH FIRST 9223372036854775808 ROWS ONLY", "9223372036854775808", 35),
        ("SELECT 1 FROM (SELECT 1 LIMIT 9223372036854775808)", "9223372036854775808", 31),
        ("SELECT 1 FROM top_allocations(9223372036854775807 * 2 + 3)", "9223372036854775807 * 2 + 3", 31),
        ("SELECT 1 FROM top_allocations(device => -9223372036854775809)", "-9223372036854775809", 42),
    ] {
        let said = refused(sql(&dir, &[query]));
        let reason = format!(
            "error: `{expression}` is beyond the integers of 64 bits\n  at line 1, column {column}:\n"
        );
        assert!(said.starts_with(&reason), "{said}");
    }
    let largest = "SELECT COUNT(*) AS n FROM (SELECT id FROM traces LIMIT 9223372036854775806 + 1)";
    assert_eq!(done(sql(&dir, &[largest, "--format", "csv"])), "n\n3\n");
}
