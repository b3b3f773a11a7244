"""Checks of the charts of a report: each is drawn, answers to pointer and legend, and tells of its marks."""

from __future__ import annotations

import re

from checks import INSTANCE, PIXELS, Checks, scroll_to
from webdriver import Browser

# Colours on a canvas, counted coarsely; a blank one has one or two.
COLOURS = """
const pixels = arguments[0];
const seen = new Set();
for (let at = 0; at < pixels.length; at += 4 * 7) seen.add(pixels[at] >> 4 << 8 | pixels[at + 1] >> 4 << 4 | pixels[at + 2] >> 4);
return seen.size;
"""


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


def legends_hide(browser: Browser, check: Checks, chart: str):
    """A click on the first entry of a legend hides its series, in both languages, and the rest stays; another shows it."""
    scroll_to(browser, chart)
    state = f"""
        const option = {INSTANCE}.getOption();
        const [name] = option.legend[0].data;
        return [option.legend[0].selected[name] ?? true, option.series.filter((series) => series.name !== name).map((series) => series.data?.length ?? 0), option.yAxis[0].max];
    """
    before = browser.run(state, chart)
    colours = f"{PIXELS}(document.querySelector('[data-chart=\"{chart}\"] canvas'))"
    picture = f"{colours}.reduce((a, b) => (a * 31 + b) % 1000003, 7)"
    seen = browser.run(f"return {picture}")
    place = browser.run("""
        const box = document.querySelector(`[data-chart="${arguments[0]}"]`).getBoundingClientRect();
        return [box.left + 11, box.top + 12];
    """, chart)
    browser.click(*place)
    hidden = browser.run(state, chart)
    check(before[0] and not hidden[0], f"{chart}: a click on the legend hides", hidden)
    check(hidden[1] == before[1], f"{chart}: other series stay", hidden)
    # A canvas is painted with the next frame.
    check(browser.wait(f"return {picture} !== {seen}", 5), f"{chart}: what is hidden is gone")
    check(browser.run(COLOURS.replace("arguments[0]", colours)) >= 4, f"{chart} is not blank without it")
    for tag in ("zh", "en"):
        browser.run("document.querySelector(`[data-language=${arguments[0]}]`).click()", tag)
        check(not browser.run(state, chart)[0], f"{chart}: what is hidden stays so, {tag}")
    browser.click(*place)
    after = browser.run(state, chart)
    check(after == before, f"{chart}: another click brings it back", after)


def spikes_give_way(browser: Browser, check: Checks, chart: str):
    """Where a short spike makes all else flat, the axis can end at what is usual, and the peak is told of at its end."""
    usual = browser.run("return Page.data.charts.find((chart) => chart.id === arguments[0]).extra.usual", chart)
    buttons = browser.run("return document.querySelectorAll(`#${arguments[0]} [data-way=cut]`).length", chart)
    check(buttons == (2 if usual else 0), f"{chart} offers to leave out a spike if it has one", buttons)
    if not usual:
        return
    scroll_to(browser, chart)
    script = f"const option = {INSTANCE}.getOption(); return [option.yAxis[0].max, Math.max(...option.series[0].markPoint.data.map((peak) => peak.coord[1]))]"
    whole, _ = browser.run(script, chart)
    browser.run("document.querySelector(`#${arguments[0]} [data-way=cut]:last-child`).click()", chart)
    top, peak = browser.run(script, chart)
    check(usual <= top < whole / 2, f"{chart} without its spike is higher", f"{top} of {whole}, usual {usual}")
    check(peak <= top, f"{chart} tells of its peak at the end of the axis", f"{peak} of {top}")
    browser.run("document.querySelector(`#${arguments[0]} [data-way=cut]`).click()", chart)
    check(browser.run(script, chart)[0] == whole, f"{chart} has its spike again")


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
