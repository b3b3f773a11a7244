//! Sums that 64 bits cannot hold are refused in every way that the engine adds up, and all others are what they were.

use super::*;

/// An engine over nothing, which works in one part or in several.
pub(super) fn engine(partitions: usize) -> Engine {
    Engine::in_memory(std::collections::HashMap::new(), Options { partitions, ..Options::default() }).unwrap()
}

/// The rows of a query as CSV.
pub(super) fn rows(engine: &Engine, sql: &str) -> npusnap::error::Result<String> {
    let mut csv = Vec::new();
    let mut writer = arrow::csv::WriterBuilder::new().with_header(false).build(&mut csv);
    for batch in engine.query(sql)? {
        writer.write(&batch?).unwrap();
    }
    drop(writer);
    Ok(String::from_utf8(csv).unwrap())
}

/// Values of two groups, with a NULL in each: 9223372036854775807, 1 and -1; 5, 5 and 7.
const VALUES: &str = "(VALUES ('a', 1, 9223372036854775807), ('a', 2, 1), ('a', 3, -1), ('a', 4, NULL),
    ('b', 5, 5), ('b', 6, 5), ('b', 7, 7), ('b', 8, NULL)) AS t(g, n, x)";

#[test]
fn a_sum_beyond_64_bits_is_an_error_and_no_small_number() {
    for partitions in [1, 4] {
        let engine = engine(partitions);
        for sum in [
            format!("SELECT SUM(x) FROM {VALUES} WHERE n < 3"),
            format!("SELECT SUM(x) FROM {VALUES}"),
            format!("SELECT g, SUM(x) FROM {VALUES} WHERE n < 3 GROUP BY g"),
            format!("SELECT g, SUM(x) FILTER (WHERE n < 3) FROM {VALUES} GROUP BY g"),
            format!("SELECT SUM(DISTINCT x), SUM(DISTINCT n) FROM {VALUES} WHERE n < 3"),
            format!("SELECT g, SUM(DISTINCT x), SUM(DISTINCT n) FROM {VALUES} WHERE n < 3 GROUP BY g"),
            format!("SELECT SUM(x) OVER (ORDER BY n) FROM {VALUES}"),
            format!("SELECT SUM(x) OVER (ORDER BY n ROWS 1 PRECEDING) FROM {VALUES}"),
            format!("SELECT SUM(-x) FROM {VALUES} WHERE n < 3 OR n = 7"),
        ] {
            match rows(&engine, &sum) {
                Ok(rows) => panic!("{sum}: {rows}"),
                Err(error) => {
                    let cause =
                        std::error::Error::source(&error).map(ToString::to_string).unwrap_or_default();
                    assert!(cause.starts_with("a sum does not fit in 64 bits; "), "{sum}: {error} {cause}");
                }
            }
        }
    }
}

#[test]
fn sums_that_fit_are_exact_in_every_form() {
    for partitions in [1, 4] {
        let engine = engine(partitions);
        for (sum, expected) in [
            (format!("SELECT SUM(x) FROM {VALUES} WHERE n IN (1, 3)"), "9223372036854775806\n"),
            (format!("SELECT g, SUM(x) FROM {VALUES} WHERE n > 1 GROUP BY g ORDER BY g"), "a,0\nb,17\n"),
            (
                format!("SELECT g, SUM(x) FILTER (WHERE n > 5) AS s FROM {VALUES} GROUP BY g ORDER BY g"),
                "a,\nb,12\n",
            ),
            (
                format!(
                    "SELECT g, SUM(DISTINCT x), SUM(DISTINCT n) FROM {VALUES} WHERE n > 1 GROUP BY g ORDER BY g"
                ),
                "a,0,9\nb,12,26\n",
            ),
            (
                format!("SELECT n, SUM(x) OVER (ORDER BY n) FROM {VALUES} WHERE n > 3"),
                "4,\n5,5\n6,10\n7,17\n8,17\n",
            ),
            (
                format!("SELECT n, SUM(x) OVER (ORDER BY n ROWS 1 PRECEDING) FROM {VALUES} WHERE n > 3"),
                "4,\n5,5\n6,10\n7,12\n8,7\n",
            ),
            (format!("SELECT SUM(-x) FROM {VALUES} WHERE n < 3"), "-9223372036854775808\n"),
            (format!("SELECT 1, SUM(x) FROM {VALUES} WHERE n > 99"), "1,\n"),
            (
                format!("SELECT SUM(CAST(x AS DOUBLE)), SUM(n) FROM {VALUES} WHERE n < 3"),
                "9.223372036854776e18,3\n",
            ),
            ("SELECT SUM(value) FROM generate_series(1, 100000)".to_owned(), "5000050000\n"),
            (
                "SELECT value % 3 AS r, SUM(value) FROM generate_series(1, 100000) GROUP BY r ORDER BY r"
                    .to_owned(),
                "0,1666683333\n1,1666716667\n2,1666650000\n",
            ),
        ] {
            assert_eq!(rows(&engine, &sum).unwrap(), expected, "{sum}");
        }
    }
}
