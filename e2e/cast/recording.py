"""Records what programs write to a terminal, with the times."""

import codecs
import os
import pty
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from e2e.cast.terminal import Terminal

HEIGHT, WIDTH = 24, 118
_READING = 1.0
"""Seconds between a command line and its output."""
_PROMPT = "\x1b[1;32m$\x1b[0m "


@dataclass(frozen=True)
class Frame:
    """The rows of the window from this time on, in seconds since the start."""

    at: float
    rows: tuple[str, ...]


class Recording:
    """A session of commands in a directory; `frames` has each change of the window.

    The times have pauses for the viewer, in which nothing runs.
    """

    def __init__(self, directory: Path, env: Mapping[str, str]) -> None:
        self.frames: list[Frame] = []
        self._directory = directory
        self._env = {**os.environ, **env, "TERM": "xterm-256color", "COLUMNS": str(WIDTH), "LINES": str(HEIGHT)}
        self._terminal = Terminal()
        self._shift = -time.monotonic()

    def command(self, line: str, *, pause: float) -> None:
        """Type a command line, and record its output to the end. RuntimeError if it fails."""
        self._write(f"{_PROMPT}{line}\r\n")
        self._shift += _READING
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            ["bash", "-c", line], cwd=self._directory, env=self._env, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        decoder = codecs.getincrementaldecoder("utf-8")()
        while piece := self._read(ours):
            self._write(decoder.decode(piece))
        os.close(ours)
        if process.wait():
            raise RuntimeError(f"{line} ends with {process.returncode}: {self._terminal.last(HEIGHT)}")
        self._shift += pause

    def _read(self, terminal: int) -> bytes:
        """The next output; empty at the end, which Linux reports as an error."""
        try:
            return os.read(terminal, 65_536)
        except OSError:
            return b""

    def _write(self, text: str) -> None:
        self._terminal.write(text)
        self.frames.append(Frame(time.monotonic() + self._shift, self._terminal.last(HEIGHT)))
