#!/usr/bin/env python3
"""Opens reports in a headless Chromium and checks that they work for people: eyes, pointer, keyboard, printer.

    check_report.py [--axe AXE.js] REPORT.html...

Prints one line for each check and exits with 1 if one failed, with 77 if this machine has no browser.
"""

from __future__ import annotations

import argparse
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import check_charts as in_charts  # noqa: E402
import check_page as on_page  # noqa: E402
from checks import Checks  # noqa: E402
from webdriver import Browser, missing  # noqa: E402


def check_report(path: str, axe: str | None) -> Checks:
    check = Checks()
    address = "file://" + os.path.abspath(path)
    with Browser() as browser:
        browser.requests()
        browser.open(address)
        on_page.keyboard_reaches(browser, check)
        browser.open(address)
        on_page.sections_open_with_the_worst(browser, check)
        charts = in_charts.charts_draw(browser, check)
        on_page.language_switches(browser, check, charts)
        first = {kind: chart for chart, kind in reversed(charts)}
        for kind in ("timeline", "expansion", "layout", "compare", "devices"):
            if kind in first:
                in_charts.zooms(browser, check, first[kind])
        for kind in ("timeline", "expansion", "layout", "devices"):
            if kind in first:
                in_charts.legends_hide(browser, check, first[kind])
        if "timeline" in first:
            in_charts.spikes_give_way(browser, check, first["timeline"])
        if "stacks" in first:
            in_charts.stacks_open(browser, check, first["stacks"])
        if "timeline" in first:
            in_charts.moments_open(browser, check, first["timeline"])
        in_charts.tips_tell(browser, check, charts)
        on_page.tables_fit(browser, check)
        on_page.long_tables_scroll(browser, check)
        on_page.links_lead(browser, check)
        on_page.theme_switches(browser, check, charts)
        on_page.prints(browser, check, charts)
        on_page.stays_quiet(browser, check, address, "on a laptop")
        if axe:
            on_page.accessible(browser, check, axe, "light")
            browser.run("document.querySelectorAll('.theme').forEach((button) => { button.click(); button.click(); })")
            on_page.accessible(browser, check, axe, "dark")
    with Browser(390, 844, scale=2) as browser:
        browser.requests()
        browser.open(address)
        on_page.fits_a_phone(browser, check, charts)
        high = browser.run("""
            document.querySelector('[data-stack]')?.click();
            return document.querySelector('#stack[open] header button')?.offsetHeight ?? 0;
        """)
        check(high < 44, "the button of a window has one line on a phone", f"{high} px high")
        on_page.stays_quiet(browser, check, address, "on a phone")
    return check


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--axe", help="axe.min.js, for the rules of accessibility")
    parser.add_argument("reports", nargs="+")
    options = parser.parse_args()
    lack = missing()
    if lack:
        print(f"SKIPPED: {lack}")
        sys.exit(77)
    failed = 0
    for path in options.reports:
        check = check_report(path, options.axe)
        failed += check.failed
        print(f"{os.path.basename(path)}: {check.passed} checks passed, {check.failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
