"""Checks of the page around the charts: languages, themes, links, tables, keyboard, printer, and that it stays quiet."""

from __future__ import annotations

import re
import tempfile
import zlib

from checks import INSTANCE, PIXELS, Checks, scroll_to
from webdriver import Browser


def sections_open_with_the_worst(browser: Browser, check: Checks):
    """Of several devices a section shows first the one that it finds most wrong, and only that."""
    wrong = browser.run("""
        return [...document.querySelectorAll('.by-device')].map((group) => [group.dataset.first || Page.data.worst, [...group.children]
            .filter((panel) => panel.matches('.panel') && !panel.hidden).map((panel) => panel.dataset.device),
            group.querySelector(':scope > .panel').dataset.device])
            .filter(([first, shown, any]) => shown.length !== 1 || (shown[0] !== first && shown[0] !== any));
    """)
    check(not wrong, "sections open with the device they find most wrong", wrong)


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
    # The page makes the names of stacks itself, from the frames that it carries: as the tables have them. A comparison
    # names what stacks have in common, whatever their lines.
    other = browser.run("""
        return [...document.querySelectorAll('section:not(#compare) td [data-stack]')].map((link) => [link.querySelector('[lang=en]')?.textContent ?? link.textContent, Page.stackLabel(Number(link.dataset.stack))])
            .filter(([said, made]) => !/^\\d+$/.test(said) && !said.startsWith(made) && !made.startsWith('call stack'));
    """)
    check(not other, "charts and tables call a stack the same", other[:3])


def fits_a_phone(browser: Browser, check: Checks, charts: list):
    """What a narrow screen shortens still says what it is."""
    wide = browser.run("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(wide <= 0, "a phone need not scroll sideways", f"{wide} px too wide")
    for chart, kind in charts:
        check(scroll_to(browser, chart), f"{chart} is drawn on a phone")
        if kind == "stacks":
            names = browser.run(f"""
                const [{{ data, axisLabel }}] = {INSTANCE}.getOption().yAxis;
                return data.map((name) => [name, axisLabel.formatter(name)]);
            """, chart)
            alike = len({name for name, _ in names}) - len({short for _, short in names})
            check(not alike, f"{chart}: shortened names are told apart", names)
        if kind == "oom":
            axis = browser.run(f"const [{{ min, max, interval }}] = {INSTANCE}.getOption().xAxis; return [min % interval, max % interval]", chart)
            check(axis == [0, 0], f"{chart}: its axis has a zero", axis)
    cut = browser.run("""
        const right = (box) => box.getBoundingClientRect().right;
        return [...document.querySelectorAll('.scroll')].filter((box) => box.offsetParent && right(box.querySelector('caption')) > right(box))
            .map((box) => box.querySelector('caption').innerText);
    """)
    check(not cut, "what a table shows is in sight on a phone", cut)


def long_tables_scroll(browser: Browser, check: Checks):
    """A table too long to stand in the page has its last row at its end, and no more rows than can be seen."""
    tables = browser.run("return [...document.querySelectorAll('[data-rows]')].map((box) => box.getAttribute('aria-labelledby'))")
    for name in tables[:3]:
        browser.run("""
            const box = document.querySelector(`[aria-labelledby="${arguments[0]}"]`);
            const panel = box.closest('.panel');
            if (panel?.hidden) document.querySelector(`.tabs button[data-device="${panel.dataset.device}"]`).click();
            box.scrollIntoView({block: 'center', behavior: 'instant'});
        """, name)
        count = browser.wait(f"return document.querySelector('[aria-labelledby=\"{name}\"] table').getAttribute('aria-rowcount')", 5)
        check(count, f"{name} knows how many rows it has")
        reached = browser.wait(f"""
            const box = document.querySelector('[aria-labelledby="{name}"]');
            box.scrollTop = box.scrollHeight;
            const last = [...box.querySelectorAll('tbody tr[aria-rowindex]')].at(-1);
            return last?.getAttribute('aria-rowindex') === '{count}' && last.innerText.trim() && box.querySelectorAll('tbody tr').length < 60;
        """, 5)
        check(reached, f"{name} has its last row at its end")
        shifted = browser.run("""
            const table = document.querySelector(`[aria-labelledby="${arguments[0]}"] table`);
            const room = (cell) => getComputedStyle(cell).paddingLeft;
            const cells = [...table.querySelector('tbody tr[aria-rowindex]').cells];
            return cells.filter((cell, place) => room(cell) !== room(table.tHead.rows[0].cells[place])).map((cell) => cell.innerText);
        """, name)
        check(not shifted, f"cells of {name} stand under their headings", shifted)


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
    tables_print_whole(browser, check)
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
    hints = browser.run("return [...document.querySelectorAll('.hint')].filter((hint) => hint.offsetHeight > 0).length")
    check(hints == 0, "no hint for the pointer is printed", hints)
    browser.devtools("Emulation.setEmulatedMedia", media="")
    if charts:
        # Lines and areas of the still pictures are paths in the file, not pixels.
        streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.S)
        paths = sum(inflated(stream).count(b" re\n") + inflated(stream).count(b" l\n") for stream in streams)
        check(paths > 20 * len(charts), "the printed charts are drawings", f"{paths} paths")


def tables_print_whole(browser: Browser, check: Checks):
    """A table of which the screen has the rows in view has all of them on paper, whoever asks for paper, and then few again."""
    state = """
        return [...document.querySelectorAll('[data-rows]')].map((box) => [
            Page.data.rows[box.dataset.rows].length, box.querySelectorAll('tbody tr[aria-rowindex]').length,
            box.scrollHeight > box.clientHeight + 1,
        ])
    """
    # The page hears of another medium with the next frame, which a busy machine keeps waiting.
    is_whole = f"return (() => {{ {state} }})().every(([rows, shown, scrolls]) => rows === shown && !scrolls)"
    event = "window.dispatchEvent(new Event(arguments[0]))"
    browser.run(event, "beforeprint")
    cut = [table for table in browser.run(state) if table[0] != table[1]]
    check(not cut, "long tables are whole before the page prints", cut)
    browser.run(event, "afterprint")
    whole = [table for table in browser.run(state) if table[0] > 60 and table[0] == table[1]]
    check(not whole, "long tables are short again after the page was printed", whole)
    browser.devtools("Emulation.setEmulatedMedia", media="print")
    browser.wait(is_whole, 10)
    cut = [table for table in browser.run(state) if table[0] != table[1] or table[2]]
    check(not cut, "long tables are whole on paper", cut)
    browser.devtools("Emulation.setEmulatedMedia", media="")


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
