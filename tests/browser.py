"""A real browser for tests: Chromium without a window, told what to do through a pair of pipes."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage",
    "--disable-extensions", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
PATIENCE_S = 60
#: Keys that tests press: their numbers and what they write.
KEYS = {
    "Tab": (9, ""), "Enter": (13, "\r"), "ArrowRight": (39, ""), "ArrowLeft": (37, ""),
    "End": (35, ""), "Home": (36, ""), " ": (32, " "),
}  # fmt: skip


def find_browser() -> str:
    """Path of the browser; a test without one fails."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    raise AssertionError(
        f"the page is tested in a browser, and none of {', '.join(NAMES)} is here: "
        "apt-get install chromium"
    )


class Browser:
    """One page in one browser, which ends with the block.

    Attributes
    ----------
    requests : list of str
        All that the page has asked for since it was opened.
    troubles : list of str
        What the browser has complained about.
    """

    def __enter__(self) -> Browser:
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        theirs_in, self._in = os.pipe()
        self._out, theirs_out = os.pipe()
        # The browser reads from 3 and writes to 4.
        script = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out}'
        command = ["bash", "-c", script, find_browser(), *FLAGS]
        self._process = subprocess.Popen(
            [*command, f"--user-data-dir={self._profile.name}", "about:blank"],
            pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(theirs_in)
        os.close(theirs_out)
        self._rest, self._count, self._session = b"", 0, ""
        self.requests: list[str] = []
        self.troubles: list[str] = []
        target = self("Target.createTarget", url="about:blank")["targetId"]
        self._session = self("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def __call__(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return its answer."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        raw = json.dumps(message).encode() + b"\0"
        while raw:
            raw = raw[os.write(self._in, raw) :]
        while True:
            answer = self._receive()
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            # A browser that hangs must not hang the tests.
            ready, _, _ = select.select([self._out], [], [], PATIENCE_S)
            chunk = os.read(self._out, 1 << 20) if ready else b""
            assert chunk, f"the browser has ended or was silent for {PATIENCE_S} s"
            self._rest += chunk
        raw, self._rest = self._rest.split(b"\0", 1)
        message = json.loads(raw)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Log.entryAdded":
            self.troubles.append(about["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.troubles.append(about["exceptionDetails"]["text"])

    def open(self, page: Path | str, *, width: int, height: int = 800, dark: bool = False) -> None:
        """Show a file or an address as a screen of this width does, and wait until it is there."""
        self.requests, self.troubles = [], []
        self("Emulation.setDeviceMetricsOverride", width=width, height=height,
             deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self("Emulation.setEmulatedMedia", media="", features=[scheme])
        self("Page.navigate", url=page if isinstance(page, str) else page.resolve().as_uri())
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def ask(self, expression: str) -> Any:
        """Value of an expression in the page."""
        answer = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, expression: str) -> Any:
        """Value of an expression once it is true."""
        end = time.monotonic() + PATIENCE_S
        while not (value := self.ask(expression)):
            assert time.monotonic() < end, f"{expression} is {value!r}; {self.troubles}"
            time.sleep(0.02)
        return value

    def type(self, text: str) -> None:
        """Write where the focus is."""
        self("Input.insertText", text=text)

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key and let it go."""
        code, text = KEYS[key]
        about = {"key": key, "code": key, "windowsVirtualKeyCode": code, "modifiers": 2 * control}
        self("Input.dispatchKeyEvent", type="keyDown", text="" if control else text, **about)
        self("Input.dispatchKeyEvent", type="keyUp", **about)

    def upload(self, selector: str, file: Path) -> None:
        """Choose a file in a field."""
        root = self("DOM.getDocument")["root"]["nodeId"]
        node = self("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        self("DOM.setFileInputFiles", files=[str(file)], nodeId=node)

    def screenshot(self, *, whole: bool = False) -> bytes:
        """PNG of what is seen, or of the whole page."""
        options = {"captureBeyondViewport": True} if whole else {}
        if whole:
            size = self("Page.getLayoutMetrics")["cssContentSize"]
            options["clip"] = {**size, "x": 0, "y": 0, "scale": 1}
        return base64.b64decode(self("Page.captureScreenshot", format="png", **options)["data"])

    def pdf(self) -> bytes:
        """The page as it is printed."""
        return base64.b64decode(self("Page.printToPDF", printBackground=False)["data"])
