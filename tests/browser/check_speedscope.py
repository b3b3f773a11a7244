#!/usr/bin/env python3
"""Opens exports in speedscope itself, as its own command line does, and looks at what its importer made of them.

    check_speedscope.py INDEX.html PROFILE...     INDEX.html is that of speedscope's release

Ends with 77 where this machine has no browser for it.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from webdriver import Browser, missing  # noqa: E402

# The importer sets the title; what it refuses it says on the console and on the page.
OPENED = "return document.title !== 'speedscope' && document.title"
REFUSED = "return /went wrong|not.*recogni[sz]e|Failed to load/i.test(document.body.innerText) && document.body.innerText"


def check(browser: Browser, index: str, path: str, folder: str):
    name = os.path.basename(path)
    with open(path, "rb") as file:
        content = file.read()
    script = os.path.join(folder, f"{name}.js")
    with open(script, "w") as file:
        file.write(f"speedscope.loadFileFromBase64({json.dumps(name)}, {json.dumps(base64.b64encode(content).decode())})")
    browser.open("about:blank")
    browser.log("browser")
    browser.open(f"file://{index}#localProfilePath={script}")
    title = browser.wait(f"{OPENED} || ({REFUSED.removeprefix('return ')})", 30)
    said = browser.run(REFUSED)
    errors = [entry["message"] for entry in browser.log("browser") if entry["level"] == "SEVERE" and "favicon" not in entry["message"]]
    assert title and not said and not errors, f"{name}: title {title!r}, page {said!r}, console {errors}"
    expected = json.loads(content)["name"] if name.endswith(".json") else name
    assert title.startswith(expected), f"{name}: {title!r} instead of {expected!r}"
    print("speedscope opens", name, "as", repr(title))


def main():
    why = missing()
    if why:
        print("SKIPPED: speedscope in a browser:", why)
        sys.exit(77)
    with Browser() as browser, tempfile.TemporaryDirectory() as folder:
        for path in sys.argv[2:]:
            check(browser, os.path.abspath(sys.argv[1]), path, folder)


if __name__ == "__main__":
    main()
