"""What checks of a report have in common: counting, and bringing a chart into view."""

from __future__ import annotations

from webdriver import Browser

# Pixels of a canvas. They are read from a copy: reading often slows a canvas down, and the browser says so.
PIXELS = """((canvas) => {
    const copy = document.createElement('canvas');
    [copy.width, copy.height] = [canvas.width, canvas.height];
    const context = copy.getContext('2d', {willReadFrequently: true});
    context.drawImage(canvas, 0, 0);
    return context.getImageData(0, 0, copy.width, copy.height).data;
})"""
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
