"""A real browser without a window: Debian's chromium. It reaches this machine only, and has a profile of its own."""

import base64
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import websocket  # with the kubernetes client

from e2e.bench.waiting import wait_until

_SECONDS = 120


class Browser:
    """One page at a time. ``dark``: whether pages get the preference for dark colours."""

    def __init__(self, place: Path, *, dark: bool = False, width: int = 1240, height: int = 1600) -> None:
        self._place = place
        self._options = [
            "--headless=new",
            "--no-sandbox",  # root has none
            "--disable-gpu",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
            f"--user-data-dir={place / 'profile'}",
            f"--window-size={width},{height}",
            f"--blink-settings=preferredColorScheme={0 if dark else 1}",
            "--virtual-time-budget=20000",
        ]
        self.console = ""
        """What the pages have written to the console, errors included."""

    def document(self, page: Path, fragment: str = "") -> str:
        """The document after its scripts have run, as HTML."""
        return self._run("--dump-dom", f"{page.as_uri()}{f'#{fragment}' if fragment else ''}")

    def picture(self, page: Path, name: str) -> Path:
        """A picture of the page, as a PNG file."""
        file = self._place / name
        self._run(f"--screenshot={file}", page.as_uri())
        return file

    @contextmanager
    def window(self, url: str) -> Iterator["Window"]:
        """A page that a server on this machine serves, open for as long as the context, in real time."""
        errors = self._place / "window.log"
        port_file = self._place / "profile" / "DevToolsActivePort"
        port_file.unlink(missing_ok=True)
        options = [option for option in self._options if not option.startswith("--virtual-time-budget")]
        command = ["chromium", *options, "--remote-debugging-port=0", url]
        with errors.open("wb") as log, subprocess.Popen(command, stderr=log, stdout=log) as process:
            try:
                wait_until("the browser listens", lambda: port_file.exists() and "\n" in port_file.read_text())
                yield Window(int(port_file.read_text().split("\n")[0]), url)
            finally:
                process.terminate()
        self._note(errors.read_text(errors="replace"))

    def _run(self, *what: str) -> str:
        done = subprocess.run(
            ["chromium", *self._options, *what], capture_output=True, text=True, check=True, timeout=_SECONDS
        )
        self._note(done.stderr)
        return done.stdout

    def _note(self, errors: str) -> None:
        self.console += "".join(line for line in errors.splitlines(keepends=True) if ":CONSOLE" in line)


class Window:
    """An open page, by the DevTools protocol."""

    def __init__(self, port: int, url: str) -> None:
        def listed() -> str:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list", timeout=_SECONDS) as answer:
                pages = json.load(answer)
            return next((str(page["webSocketDebuggerUrl"]) for page in pages if page["url"] == url), "")

        address = wait_until(f"a window shows {url}", listed)
        self._socket = websocket.create_connection(address, timeout=_SECONDS, suppress_origin=True)
        self._calls = 0

    def document(self) -> str:
        """The document as it is now, as HTML; empty while another one is being loaded."""
        found = self._call("Runtime.evaluate", expression="document.documentElement.outerHTML", returnByValue=True)
        return str(found.get("result", {}).get("value", ""))

    def picture(self, file: Path) -> Path:
        """A picture of what the window shows, as a PNG file."""
        file.write_bytes(base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"]))
        return file

    def _call(self, method: str, **parameters: Any) -> Any:
        self._calls += 1
        self._socket.send(json.dumps({"id": self._calls, "method": method, "params": parameters}))
        while (answer := json.loads(self._socket.recv())).get("id") != self._calls:
            pass  # an event
        return answer.get("result", {})
