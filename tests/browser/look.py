#!/usr/bin/env python3
"""Pictures of a report for a person to look at.

    look.py REPORT.html FOLDER [--dark] [--zh] [--phone] [--no-script]
"""

from __future__ import annotations

import argparse
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from webdriver import Browser  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("report")
    parser.add_argument("folder")
    for flag in ("dark", "zh", "phone", "no-script"):
        parser.add_argument(f"--{flag}", action="store_true")
    options = parser.parse_args()
    os.makedirs(options.folder, exist_ok=True)
    width, height = (390, 844) if options.phone else (1360, 900)
    with Browser(width, height, dark=options.dark, scripts=not options.no_script, scale=2 if options.phone else 1) as browser:
        browser.open("file://" + os.path.abspath(options.report))
        if not options.no_script:
            if options.zh:
                browser.run("document.querySelector('[data-language=zh]').click()")
            steps = browser.run("return document.documentElement.scrollHeight") // 600
            for step in range(steps + 1):
                browser.run("window.scrollTo({top: arguments[0] * 600, behavior: 'instant'})", step)
                time.sleep(0.08)
            browser.run("window.scrollTo({top: 0, behavior: 'instant'})")
            time.sleep(0.3)
        total = int(browser.devtools("Page.getLayoutMetrics")["cssContentSize"]["height"])
        tall = 1800 if not options.phone else 2600
        browser.devtools("Emulation.setDeviceMetricsOverride", width=width, height=min(tall, max(total, height)), deviceScaleFactor=2 if options.phone else 1, mobile=options.phone)
        for part in range((total + tall - 1) // tall):
            if not options.no_script:
                browser.run("document.querySelector('nav').style.position = 'static'; window.scrollTo({top: arguments[0], behavior: 'instant'})", part * tall)
            else:
                browser.devtools("Runtime.evaluate", expression=f"window.scrollTo(0, {part * tall})")
            time.sleep(0.4)
            browser.picture(os.path.join(options.folder, f"{part}.png"))
        for entry in [] if options.no_script else browser.log("browser"):
            print(entry["level"], entry["message"])


if __name__ == "__main__":
    main()
