"""A browser under test: Chromium through its own WebDriver server, with nothing but the standard library.

    with Browser() as browser:
        browser.open("file:///tmp/report.html")
        browser.run("return document.title")
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.request

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


def missing() -> str | None:
    """What this machine lacks for a browser test; None if nothing."""
    if not shutil.which("chromedriver"):
        return "no chromedriver (Debian: chromium-driver)"
    if not (shutil.which("chromium") or shutil.which("google-chrome") or shutil.which("chromium-browser")):
        return "no Chromium (Debian: chromium)"
    return None


class Browser:
    """One window. Console messages and requests since the last call of `log` are kept by the browser."""

    def __init__(self, width: int = 1360, height: int = 900, dark: bool = False, scripts: bool = True, scale: float = 1):
        self.size = (width, height)
        self.dark, self.scripts, self.scale = dark, scripts, scale

    def __enter__(self) -> Browser:
        self.folder = tempfile.mkdtemp(prefix="npusnap-browser-")
        self.server = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = None
        for line in self.server.stdout:
            if "started successfully on port" in line:
                port = line.rstrip().rstrip(".").rsplit(" ", 1)[1]
                break
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
                     "--no-first-run", "--disable-background-networking", f"--user-data-dir={self.folder}",
                     f"--window-size={self.size[0]},{self.size[1]}", f"--force-device-scale-factor={self.scale}"]
        options = {"args": arguments, "perfLoggingPrefs": {"enableNetwork": True}}
        if not self.scripts:
            options["prefs"] = {"profile.managed_default_content_settings.javascript": 2}
        capabilities = {"browserName": "chrome", "goog:chromeOptions": options,
                        "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        opened = self._call("POST", "/session", {"capabilities": {"alwaysMatch": capabilities}})
        self.session = f"/session/{opened['sessionId']}"
        self.devtools("Emulation.setDeviceMetricsOverride",
                      width=self.size[0], height=self.size[1], deviceScaleFactor=self.scale, mobile=False)
        if self.dark:
            self.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        return self

    def __exit__(self, *_):
        try:
            self._call("DELETE", self.session)
        finally:
            self.server.terminate()
            self.server.wait(timeout=20)
            shutil.rmtree(self.folder, ignore_errors=True)

    def _call(self, method: str, path: str, body: dict | None = None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data, {"Content-Type": "application/json"}, method=method)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def devtools(self, command: str, **parameters):
        """A command of the DevTools protocol."""
        return self._call("POST", f"{self.session}/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, address: str):
        """Loads a page and waits until it is complete."""
        self._call("POST", f"{self.session}/url", {"url": address})

    def run(self, script: str, *arguments):
        """What the body of a function returns."""
        return self._call("POST", f"{self.session}/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script: str, *arguments):
        """What the body of a function hands to its last argument."""
        return self._call("POST", f"{self.session}/execute/async", {"script": script, "args": list(arguments)})

    def wait(self, script: str, seconds: float = 10):
        """Waits until a condition holds; its value then."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if value or time.monotonic() > end:
                return value
            time.sleep(0.05)

    def click(self, x: float, y: float):
        """A click at a place of the viewport."""
        for kind, buttons in (("mouseMoved", 0), ("mousePressed", 1), ("mouseReleased", 0)):
            self.devtools("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="none" if kind == "mouseMoved" else "left",
                          buttons=buttons, clickCount=0 if kind == "mouseMoved" else 1)

    def move(self, x: float, y: float):
        """Moves the pointer to a place of the viewport."""
        self.devtools("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y, button="none")

    def key(self, name: str, code: int):
        """Presses a key."""
        for kind in ("keyDown", "keyUp"):
            self.devtools("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code,
                          text="\r" if name == "Enter" and kind == "keyDown" else "")

    def log(self, kind: str) -> list[dict]:
        """Messages of `browser` (console) or `performance` (DevTools events) since the last call."""
        return self._call("POST", f"{self.session}/se/log", {"type": kind})

    def requests(self) -> list[str]:
        """Addresses that were asked for since the last call."""
        events = [json.loads(entry["message"])["message"] for entry in self.log("performance")]
        return [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]

    def picture(self, path: str, whole: bool = False):
        """Saves what the window shows, or the whole page, as PNG."""
        parameters = {"format": "png", "captureBeyondViewport": whole}
        if whole:
            size = self.devtools("Page.getLayoutMetrics")["cssContentSize"]
            parameters["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.devtools("Page.captureScreenshot", **parameters)["data"]))

    def print(self, path: str):
        """Saves the page as it prints."""
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.devtools("Page.printToPDF", printBackground=True)["data"]))
