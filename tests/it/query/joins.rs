//! Joins of three relations and more, whose conditions the engine rearranges: the rows are those of SQLite.

use rusqlite::Connection;

use super::sums::{engine, rows};

const RELATIONS: &str = "WITH
    a (id, x, y) AS (VALUES (1, 10, 1), (2, 20, 2), (3, 10, 1), (4, NULL, NULL)),
    s (side) AS (VALUES (-1), (1)),
    n (id, x, y) AS (VALUES (2, 10, 3), (1, 20, 4), (2, 20, 1), (4, 10, 2), (5, NULL, NULL), (3, 10, NULL))";

#[test]
fn a_condition_of_three_relations_is_not_lost() {
    let sqlite = Connection::open_in_memory().unwrap();
    for from in [
        "a CROSS JOIN s JOIN n ON n.x = a.x AND n.id = a.id + s.side",
        "a CROSS JOIN s JOIN n ON n.id = a.id + s.side",
        "a JOIN s ON s.side = a.y JOIN n ON n.x = a.x AND n.id = a.id + s.side",
        "n JOIN (a CROSS JOIN s) ON n.x = a.x AND n.id = a.id + s.side",
        "a CROSS JOIN s CROSS JOIN n WHERE n.x = a.x AND n.id = a.id + s.side",
        "a CROSS JOIN s JOIN n ON n.x = a.x AND n.id = a.id + s.side WHERE s.side = 1",
        "s CROSS JOIN a JOIN n ON n.y = a.y AND n.id - s.side = a.id AND n.x + a.x > 20",
        "a JOIN n ON (n.x IS NOT DISTINCT FROM a.x) AND (n.id IS NOT DISTINCT FROM a.id + 1)",
        "a CROSS JOIN s JOIN n ON (n.x IS NOT DISTINCT FROM a.x) AND (n.id IS NOT DISTINCT FROM a.id + s.side)",
        "a JOIN n ON (n.x IS NOT DISTINCT FROM a.x) JOIN s ON s.side = a.y",
        "a JOIN s ON s.side = a.y JOIN n ON (n.x IS NOT DISTINCT FROM a.x)",
        "a JOIN n ON n.x IS NOT DISTINCT FROM a.x AND n.id = a.id + 1 OR n.y = 4",
        "a JOIN n ON n.x IS NOT DISTINCT FROM a.x AND n.id IS DISTINCT FROM a.id AND n.y > 0",
        "a JOIN n ON (a.id = 1) IS NOT DISTINCT FROM (n.id < 3) AND n.id < 2",
        "a JOIN n ON n.id > 1 AND (a.id = 1) IS NOT DISTINCT FROM (n.id < 3) OR n.y = 4",
        "a JOIN n ON n.id > 1 AND (a.id = 1) IS DISTINCT FROM (n.id < 3) AND n.y = 1 OR n.y = 4 OR a.y = 2",
        "a JOIN n ON NOT (a.id = 1) IS NOT DISTINCT FROM (n.id < 3) AND n.id < 2",
        "a JOIN n ON NOT n.x IS NOT DISTINCT FROM a.x OR n.id = a.id AND NOT a.y IS DISTINCT FROM n.y AND n.y > 0",
        "a JOIN n ON (a.id = 1) IS DISTINCT FROM (n.id < 3 AND n.x = 10) OR n.id IS NOT DISTINCT FROM NULL",
        "a CROSS JOIN s JOIN n ON n.x = a.x AND (n.id IS NOT DISTINCT FROM a.id + s.side)",
    ] {
        let sql = format!("{RELATIONS} SELECT COUNT(*), COALESCE(SUM(a.id * 100 + n.id), 0) FROM {from}");
        let expected: (i64, i64) = sqlite.query_row(&sql, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
        for partitions in [1, 4] {
            let found = rows(&engine(partitions), &sql).unwrap();
            assert_eq!(found, format!("{},{}\n", expected.0, expected.1), "{from}");
        }
    }
}
