"""Says whether the work of a database's views grows with the history, and not with its square.

view_work.py DATABASE LONGER_DATABASE

Work is counted in steps of SQLite's machine, so that no clock and no other program has a part in it. A join whose index
does not find single rows shows. A second round is on copies whose segments are as many as the history is long, half of
them of private pools, and whose events do not say their pool.
"""

import sqlite3
import sys

STRIDE = 100
# For twice the events, sorting takes little more than twice the steps, and pairs of events take four times as many.
MOST_GROWTH = 2.8
# What takes fewer is not worth a question.
LEAST_STEPS = 200_000
# No view is waited for longer.
TOO_MANY_STEPS = 400_000_000
# Bytes of each segment that is added.
SEGMENT = 1 << 21


def steps(connection, view):
    count = 0

    def step():
        nonlocal count
        count += STRIDE
        return count > TOO_MANY_STEPS

    connection.set_progress_handler(step, STRIDE)
    try:
        connection.execute(f'SELECT COUNT(*) FROM (SELECT * FROM "{view}")').fetchone()
    except sqlite3.OperationalError as error:
        if "interrupted" not in str(error):
            raise
    finally:
        connection.set_progress_handler(None, 0)
    return count


def with_private_pools(connection):
    copy = sqlite3.connect(":memory:")
    connection.backup(copy)
    copy.executescript(f"""
        UPDATE allocations SET pool_id_0 = NULL, pool_id_1 = NULL;
        INSERT INTO segments (id, device_id, address, total_size, stream, segment_type, pool_id_0, pool_id_1)
        SELECT (SELECT MAX(id) FROM segments) + id, device_id, id * {SEGMENT}, {SEGMENT}, stream, 'large', 0, id % 2
        FROM allocations;
        UPDATE allocations SET addr = id * {SEGMENT} + 512;
    """)
    return copy


def growing(views, short, long):
    for view in views:
        before, after = steps(short, view), steps(long, view)
        if after > LEAST_STEPS and after > before * MOST_GROWTH:
            yield f"{view}: {before} steps, and {after} for twice the events"


def main(short, long):
    short, long = (sqlite3.connect(f"file:{path}?mode=ro", uri=True) for path in (short, long))
    views = [name for (name,) in short.execute("SELECT name FROM sqlite_master WHERE type = 'view'")]
    wrong = [*growing(views, short, long)]
    short, long = map(with_private_pools, (short, long))
    wrong += (f"with private pools, {view}" for view in growing(views, short, long))
    print("\n".join(wrong) or f"{len(views)} views grow with the history")
    return bool(wrong) or not views


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
