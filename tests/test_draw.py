"""The page of `make demo` on which one draws: its JavaScript against hmoh.py, and in a browser."""

import base64
import contextlib
import json
import shutil
import socket
import subprocess
import time
import urllib.request

import numpy as np
import pytest

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the key of an element, by the standard WebDriver


class Browser:
    """Chromium without a window, driven by chromedriver; it opens pages of this machine only."""

    def __init__(self, folder, mobile=None):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        command = [shutil.which("chromedriver"), f"--port={port}"]
        self.driver = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        self.root = f"http://127.0.0.1:{port}/session"
        flags = (
            "headless no-sandbox disable-gpu disable-quic no-first-run disable-component-update "
        )
        flags += "disable-background-networking disable-sync hide-scrollbars window-size=1280,1000"
        options = {"args": [f"--{flag}" for flag in [*flags.split(), f"user-data-dir={folder}"]]}
        if mobile:
            metrics = {"width": mobile[0], "height": mobile[1], "pixelRatio": 2.0}
            options["mobileEmulation"] = {"deviceMetrics": metrics}
        capabilities = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        for _ in range(100):  # until the driver listens
            with contextlib.suppress(OSError):
                urllib.request.urlopen(self.root.replace("session", "status")).read()
                break
            time.sleep(0.1)
        answer = self.call("", capabilities={"alwaysMatch": capabilities})
        self.root += "/" + answer["sessionId"]

    def call(self, path, method="POST", **body):
        """Send a command of the standard WebDriver."""
        data = json.dumps(body).encode() if method == "POST" else None
        request = urllib.request.Request(self.root + path, data, method=method)
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=120) as response:
            return json.load(response)["value"]

    def run(self, script, *args):
        """Run a script in the page and return what it returns."""
        return self.call("/execute/sync", script=script, args=list(args))

    def wait(self, script, seconds=60):
        """Wait until an expression is true in the page."""
        end = time.monotonic() + seconds
        while not self.run(f"return {script}"):
            assert time.monotonic() < end, f"{script} stayed false"
            time.sleep(0.2)

    def text(self, name):
        return self.run("return document.getElementById(arguments[0]).innerText", name)

    def click(self, selector):
        found = self.call("/element", using="css selector", value=selector)
        self.call(f"/element/{found[ELEMENT]}/click")

    def stroke(self, *points, pointer="mouse"):
        """Draw a stroke on the pad, through points from 0 to 100."""
        self.run("document.getElementById('pad').scrollIntoView({block: 'nearest'})")
        box = self.run("return document.getElementById('pad').getBoundingClientRect().toJSON()")
        moves = []
        for x, y in points:
            place = {
                "x": box["x"] + x * box["width"] / 100,
                "y": box["y"] + y * box["height"] / 100,
            }
            place = {axis: round(value) for axis, value in place.items()}
            moves.append({"type": "pointerMove", "duration": 20, **place})
        down = [{"type": "pointerDown", "button": 0}]
        up = [{"type": "pointerUp", "button": 0}]
        source = {"type": "pointer", "id": pointer, "parameters": {"pointerType": pointer}}
        self.call("/actions", actions=[source | {"actions": moves[:1] + down + moves[1:] + up}])

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("/screenshot", "GET")))

    def log(self):
        """Return the messages of the console: errors, and what the page's policy refused."""
        return self.call("/se/log", type="browser")

    def close(self):
        self.call("", "DELETE")
        self.driver.terminate()
        self.driver.wait(10)
