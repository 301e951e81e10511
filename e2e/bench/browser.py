"""A real browser without a window: Debian's chromium. It reaches this machine only, and has a profile of its own."""

import subprocess
from pathlib import Path

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
        self.said = ""
        """What the pages have written to the console, errors included."""

    def document(self, page: Path, fragment: str = "") -> str:
        """The document after its scripts have run, as HTML."""
        return self._run("--dump-dom", f"{page.as_uri()}{f'#{fragment}' if fragment else ''}")

    def document_at(self, url: str) -> str:
        """The same of a page that a server on this machine serves, after 20 seconds by the clock of the page."""
        return self._run("--dump-dom", url)

    def picture_at(self, url: str, name: str) -> Path:
        """A picture of that page, as a PNG file."""
        file = self._place / name
        self._run(f"--screenshot={file}", url)
        return file

    def picture(self, page: Path, name: str) -> Path:
        """A picture of the page, as a PNG file."""
        file = self._place / name
        self._run(f"--screenshot={file}", page.as_uri())
        return file

    def _run(self, *what: str) -> str:
        done = subprocess.run(
            ["chromium", *self._options, *what], capture_output=True, text=True, check=True, timeout=_SECONDS
        )
        self.said += "".join(line for line in done.stderr.splitlines(keepends=True) if ":CONSOLE" in line)
        return done.stdout
