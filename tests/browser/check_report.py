#!/usr/bin/env python3
"""Opens reports in a headless Chromium and checks that they work for people: eyes, pointer, keyboard, printer.

    check_report.py [--axe AXE.js] REPORT.html...

Prints one line for each check and exits with 1 if one failed, with 77 if this machine has no browser.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
import zlib

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from webdriver import Browser, missing  # noqa: E402

# Pixels of a canvas. They are read from a copy: reading often slows a canvas down, and the browser says so.
PIXELS = """((canvas) => {
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext('2d', {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    return context.getImageData(0, 0, copy.width, copy.height).data;
})"""
# Colours on a canvas, counted coarsely; a blank one has one or two.
COLOURS = """
const pixels = arguments[0];
const seen = new Set();
for (let at = 0; at < pixels.length; at += 4 * 7) seen.add(pixels[at] >> 4 << 8 | pixels[at + 1] >> 4 << 4 | pixels[at + 2] >> 4);
return seen.size;
"""
INSTANCE = "echarts.getInstanceByDom(document.querySelector(`[data-chart=\"${arguments[0]}\"]`))"


class Checks:
    """Counts what was checked, and says what failed."""

    def __init__(self):
        self.failed = 0
        self.passed = 0

    def __call__(self, holds, what: str, found=""):
        if holds:
            self.passed += 1
        else:
            self.failed += 1
            print(f"FAILED {what}{f': {found}' if found != '' else ''}")


def scroll_to(browser: Browser, chart: str):
    """Brings a chart into view, with its device, and waits until it is drawn."""
    browser.run("""
        const panel = document.getElementById(arguments[0]).closest('.panel');
        if (panel?.hidden) document.querySelector(`.tabs button[data-device="${panel.dataset.device}"]`).click();
        document.querySelector(`[data-chart="${arguments[0]}"]`).scrollIntoView({block: 'center', behavior: 'instant'});
    """, chart)
    return browser.wait(f"return document.querySelector('[data-chart=\"{chart}\"]').dataset.drawn")


def charts_draw(browser: Browser, check: Checks):
    charts = browser.run("return Page.data.charts.map((chart) => [chart.id, chart.kind, chart.option.series.length])")
    drawn = browser.run("return document.querySelectorAll('.canvas[data-drawn]').length")
    if len(charts) > 3:
        check(drawn < len(charts), "charts out of view wait", f"{drawn} of {len(charts)} were drawn at once")
    for chart, _, series in charts:
        check(scroll_to(browser, chart), f"{chart} is drawn")
        colours = browser.run(COLOURS.replace("arguments[0]", f"{PIXELS}(document.querySelector('[data-chart=\"{chart}\"] canvas'))"))
        check(colours >= 4, f"{chart} is not blank", f"{colours} colours")
        shown = browser.run(f"return {INSTANCE}.getOption().series.length", chart)
        check(shown == series, f"{chart} has all series", f"{shown} of {series}")
    return [chart[:2] for chart in charts]


def language_switches(browser: Browser, check: Checks, charts: list):
    for tag, word, other in (("zh", "健康状态", "Health"), ("en", "Health", "健康状态")):
        browser.run("document.querySelector(`[data-language=${arguments[0]}]`).click()", tag)
        text = browser.run("return document.querySelector('nav').innerText")
        check(word in text and other not in text, f"the page is in {tag}", text)
        check(browser.run("return document.documentElement.lang") == tag, f"the page says that it is in {tag}")
        if charts:
            names = browser.run(f"return JSON.stringify({INSTANCE}.getOption().legend[0].data)", charts[0][0])
            chinese = bool(re.search("[\u4e00-\u9fff]", names))
            check(chinese == (tag == "zh"), f"charts are in {tag}", names)


def zooms(browser: Browser, check: Checks, chart: str):
    scroll_to(browser, chart)
    before = browser.run(f"const z = {INSTANCE}.getOption().dataZoom[0]; return [z.start, z.end]", chart)
    place = browser.run("""
        const box = document.querySelector(`[data-chart="${arguments[0]}"]`).getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2];
    """, chart)
    browser.devtools("Input.dispatchMouseEvent", type="mouseWheel", x=place[0], y=place[1], deltaX=0, deltaY=-240, modifiers=2)
    script = f"const z = {INSTANCE}.getOption().dataZoom[0]; return z.end - z.start < 99"
    check(browser.wait(script.replace("arguments[0]", f"'{chart}'"), 3), f"{chart} zooms with the wheel and Ctrl", before)
    browser.run(f"{INSTANCE}.dispatchAction({{type: 'restore'}})", chart)


def stacks_open(browser: Browser, check: Checks, chart: str):
    scroll_to(browser, chart)
    place = browser.run(f"""
        const chart = {INSTANCE};
        const row = chart.getOption().series[0].data.findIndex((bar) => bar.stack);
        if (row < 0) return null;
        const box = chart.getDom().getBoundingClientRect();
        const [x, y] = chart.convertToPixel({{seriesIndex: 0}}, [chart.getOption().series[0].data[row].value / 2, row]);
        return [box.left + x, box.top + y];
    """, chart)
    if place is None:
        return
    browser.click(*place)
    check(browser.wait("return document.getElementById('stack').open", 3), f"{chart}: a click opens the call stack")
    check(browser.run("return document.querySelectorAll('#stack ol li').length") > 0, f"{chart}: the call stack has frames")
    inside = browser.run("return document.getElementById('stack').contains(document.activeElement)")
    check(inside, "the focus is in the window that opened")
    browser.key("Escape", 27)
    check(browser.wait("return !document.getElementById('stack').open", 3), "Escape closes the window")


def moments_open(browser: Browser, check: Checks, chart: str):
    scroll_to(browser, chart)
    if not browser.run("return Page.data.charts.find((chart) => chart.id === arguments[0]).extra.moments.length", chart):
        return
    place = browser.run("""
        const box = document.querySelector(`[data-chart="${arguments[0]}"]`).getBoundingClientRect();
        return [box.left + box.width * 0.6, box.top + box.height * 0.6];
    """, chart)
    browser.click(*place)
    script = f"return document.querySelector('#{chart} .detail').innerText"
    check("live_at(" in (browser.wait(script, 3) or ""), f"{chart}: a click tells what lived then")


def links_lead(browser: Browser, check: Checks):
    """A number that speaks of an event, a segment or a stack shows it: on its chart, else in a window that says where."""
    for kind, shown in (
        ("event", "[...document.querySelectorAll('.chart-timeline .detail')].some((detail) => detail.innerText.includes('live_at('))"),
        ("segment", "[...document.querySelectorAll('.chart-layout .tip')].some((tip) => tip.offsetHeight > 0 && getComputedStyle(tip).visibility === 'visible')"),
        ("stack", "false"),
    ):
        # An axis of time must not mislead a link to an event.
        found = browser.run("""
            document.querySelectorAll('.chart-timeline .controls button:last-child').forEach((button) => button.click());
            const link = document.querySelector(`section[id] .scroll [data-${arguments[0]}]`);
            link?.click();
            return link?.dataset[arguments[0]];
        """, kind)
        if found is None:
            continue
        script = f"return document.getElementById('stack').open ? 'window' : {shown} && 'chart'"
        where = browser.wait(script, 5)
        check(where, f"a link leads to {kind} {found}")
        if where == "window":
            check("npusnap sql" in browser.run("return document.getElementById('stack').innerText"), f"the window says where {kind} {found} is")
            browser.run("document.getElementById('stack').close()")
        elif kind == "event":
            device, index = map(int, found.split(":"))
            view = browser.run("""
                const chart = Page.data.charts.find((chart) => chart.kind === 'timeline' && chart.device === arguments[0]);
                const zoom = echarts.getInstanceByDom(document.querySelector(`[data-chart="${chart.id}"]`)).getOption().dataZoom[0];
                return [zoom.startValue, zoom.endValue];
            """, device)
            check(view[0] <= index <= view[1], f"event {found} is in view", view)


def tips_tell(browser: Browser, check: Checks, charts: list):
    """The pointer brings up what a mark stands for, inside the chart and in the language in use."""
    for tag in ("zh", "en"):
        browser.run("document.querySelector(`[data-language=${arguments[0]}]`).click()", tag)
        for chart, kind in charts:
            scroll_to(browser, chart)
            told = browser.run(f"""
                const chart = {INSTANCE};
                const option = chart.getOption();
                const valueOf = (item) => (item === null || Array.isArray(item) || typeof item !== 'object' ? item : item.value);
                const isMark = (item) => (valueOf(item) ?? null) !== null;
                const last = (series) => (series.data ?? option.dataset?.[0]?.source ?? []).findLastIndex(isMark);
                const seriesIndex = option.series.findIndex((series) => last(series) >= 0);
                if (seriesIndex < 0) return null;
                chart.dispatchAction({{type: 'showTip', seriesIndex, dataIndex: last(option.series[seriesIndex])}});
                const box = chart.getDom().getBoundingClientRect();
                const tip = chart.getDom().querySelector('.tip');
                const place = tip?.getBoundingClientRect();
                const inside = place && place.left >= box.left - 1 && place.right <= box.right + 1;
                chart.dispatchAction({{type: 'hideTip'}});
                return [tip?.innerText ?? '', Boolean(inside)];
            """, chart)
            if told is None:
                continue
            text, inside = told
            check(text and not re.search("undefined|NaN|null|\\[object", text), f"{chart} tells of its marks, {tag}", text)
            check(inside, f"{chart} keeps its tooltip inside, {tag}")
            # Places of code are the same in every language.
            if tag == "zh" and kind != "flame":
                check(re.search("[\u4e00-\u9fff]", text), f"{chart} tells in Chinese", text)


def tables_fit(browser: Browser, check: Checks):
    blank = browser.run("""
        return [...document.querySelectorAll('.scroll table')].filter((table) => [...table.tHead.rows[0].cells].some((head, place) =>
            !head.textContent && [...table.tBodies[0].rows].every((row) => !row.cells[place]?.textContent))).map((table) => table.caption.innerText);
    """)
    check(not blank, "no column of a table is blank", blank)
    wide = browser.run("""
        return [...document.querySelectorAll('.scroll')].filter((box) => box.offsetParent && box.scrollWidth > box.clientWidth + 1
            && box.querySelectorAll('th').length < 10).map((box) => box.querySelector('caption').innerText);
    """)
    check(not wide, "tables fit a laptop", wide)
    # Without style a subject and what is said about it would read as one: "device 1 1 event".
    joined = browser.run("return [...document.querySelectorAll('.reasons li, .findings p')].map((item) => item.innerText).filter((text) => !/[:：]/.test(text))")
    check(not joined, "a finding is set off from its subject", joined)
    alike = browser.run("""
        return Page.data.charts.filter((chart) => chart.kind === 'stacks').flatMap((chart) => {
            const names = chart.option.yAxis.data.map((name) => JSON.stringify(name));
            return names.filter((name, place) => names.indexOf(name) !== place);
        });
    """)
    check(not alike, "bars of stacks are told apart by their names", alike)


def theme_switches(browser: Browser, check: Checks, charts: list):
    colour = "return getComputedStyle(document.body).backgroundColor"
    pixel = f"""
        const canvas = document.querySelector('.canvas canvas');
        return canvas && {PIXELS}(canvas).reduce((a, b) => (a * 31 + b) % 1000003, 7);
    """
    if charts:
        scroll_to(browser, charts[0][0])
    seen = set()
    for _ in range(3):
        browser.run("document.querySelector('.theme').click()")
        seen.add((browser.run("return document.querySelector('.theme').dataset.word"), browser.run(colour), browser.run(pixel)))
    by_name = {name: (background, picture) for name, background, picture in seen}
    check(set(by_name) == {"auto", "light", "dark"}, "there are three themes", sorted(by_name))
    if {"light", "dark"} <= set(by_name):
        check(by_name["light"][0] != by_name["dark"][0], "dark and light differ")
        if charts:
            check(by_name["light"][1] != by_name["dark"][1], "charts follow the theme")


def keyboard_reaches(browser: Browser, check: Checks):
    reached = []
    for _ in range(400):
        browser.key("Tab", 9)
        name = browser.run("""
            const item = document.activeElement;
            return item === document.body ? null : item.className || item.tagName;
        """)
        if name is None:
            break
        reached.append(name)
    has_charts = browser.run("return document.querySelectorAll('.canvas').length > 0")
    for what in ("skip", "theme", "SUMMARY", "copy") + (("canvas",) if has_charts else ()):
        check(any(what in name for name in reached), f"the keyboard reaches {what}")
    visible = browser.run("""
        document.querySelector('.theme').focus({focusVisible: true});
        return getComputedStyle(document.querySelector('.theme')).outlineStyle;
    """)
    check(visible == "solid", "the focus can be seen", visible)


def accessible(browser: Browser, check: Checks, axe: str, where: str):
    browser.run("document.querySelectorAll('details').forEach((item) => { item.open = true; })")
    # Through DevTools: the page's own policy lets no script in.
    with open(axe, encoding="utf-8") as file:
        browser.devtools("Runtime.evaluate", expression=file.read())
    answer = browser.devtools("Runtime.evaluate", awaitPromise=True, returnByValue=True, expression="""
        axe.run(document).then((result) => [['', 'passed', result.passes.length, '']].concat(result.violations.map((found) =>
            [found.impact, found.id, found.nodes.length, found.nodes.slice(0, 3).map((node) => node.html.slice(0, 160) + ' ' + node.failureSummary).join(' | ')])))
    """)
    (_, _, passed, _), *violations = answer["result"]["value"]
    check(passed > 15, f"axe, {where}: its rules ran", passed)
    for impact, rule, count, example in violations:
        check(impact not in ("serious", "critical"), f"axe, {where}: {rule} ({impact}) at {count} places", example)


def prints(browser: Browser, check: Checks, charts: list):
    with tempfile.NamedTemporaryFile(suffix=".pdf") as pdf:
        browser.print(pdf.name)
        content = pdf.read()
    check(content.startswith(b"%PDF"), "the page prints")
    browser.run("window.dispatchEvent(new Event('beforeprint'))")
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    stills = browser.run("""
        return [...document.querySelectorAll('.still svg')].filter((svg) => svg.getBoundingClientRect().width > 300
            && svg.querySelectorAll('rect, path, polyline, polygon, circle').length > 0).length
    """)
    check(stills == len(charts), "every chart prints as a still picture", f"{stills} of {len(charts)}")
    broken = browser.run("""
        const lines = (cell) => { const range = document.createRange(); range.selectNodeContents(cell.querySelector('button') ?? cell); return new Set([...range.getClientRects()].map((box) => Math.round(box.top))).size; };
        return [...document.querySelectorAll('td.number')].filter((cell) => cell.offsetParent && lines(cell) > 1).slice(0, 3).map((cell) => cell.innerText);
    """)
    check(not broken, "no number breaks on paper", broken)
    canvases = browser.run("return [...document.querySelectorAll('.canvas')].filter((box) => box.offsetHeight > 0).length")
    check(canvases == 0, "no canvas is printed", canvases)
    browser.devtools("Emulation.setEmulatedMedia", media="")
    if charts:
        # Lines and areas of the still pictures are paths in the file, not pixels.
        streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.S)
        paths = sum(inflated(stream).count(b" re\n") + inflated(stream).count(b" l\n") for stream in streams)
        check(paths > 20 * len(charts), "the printed charts are drawings", f"{paths} paths")


def inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


def stays_quiet(browser: Browser, check: Checks, address: str, where: str):
    messages = [entry["message"] for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
    check(not messages, f"no error in the console, {where}", messages[:3])
    outside = [url for url in browser.requests() if url != address and not url.startswith("data:")]
    check(not outside, f"no request leaves the page, {where}", outside[:3])


def check_report(path: str, axe: str | None) -> Checks:
    check = Checks()
    address = "file://" + os.path.abspath(path)
    with Browser() as browser:
        browser.requests()
        browser.open(address)
        keyboard_reaches(browser, check)
        browser.open(address)
        charts = charts_draw(browser, check)
        language_switches(browser, check, charts)
        first = {kind: chart for chart, kind in reversed(charts)}
        for kind in ("timeline", "expansion", "layout", "compare", "devices"):
            if kind in first:
                zooms(browser, check, first[kind])
        if "stacks" in first:
            stacks_open(browser, check, first["stacks"])
        if "timeline" in first:
            moments_open(browser, check, first["timeline"])
        tips_tell(browser, check, charts)
        tables_fit(browser, check)
        links_lead(browser, check)
        theme_switches(browser, check, charts)
        prints(browser, check, charts)
        stays_quiet(browser, check, address, "on a laptop")
        if axe:
            accessible(browser, check, axe, "light")
            browser.run("document.querySelectorAll('.theme').forEach((button) => { button.click(); button.click(); })")
            accessible(browser, check, axe, "dark")
    with Browser(390, 844, scale=2) as browser:
        browser.requests()
        browser.open(address)
        wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        check(wide <= 0, "a phone need not scroll sideways", f"{wide} px too wide")
        for chart, _ in charts:
            check(scroll_to(browser, chart), f"{chart} is drawn on a phone")
        high = browser.run("""
            document.querySelector('[data-stack]')?.click();
            return document.querySelector('#stack[open] header button')?.offsetHeight ?? 0;
        """)
        check(high < 44, "the button of a window has one line on a phone", f"{high} px high")
        stays_quiet(browser, check, address, "on a phone")
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
