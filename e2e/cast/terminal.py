"""The rows of a terminal while a program writes to it: as much of a terminal as `rich` uses.

A sequence that is not known here raises `ValueError`, so that no picture shows what a terminal would not.
"""

import re

_SEQUENCE = re.compile(r"\x1b\[(\??[\d;]*)([A-Za-z])")
_BEGUN = re.compile(r"\x1b(\[\??[\d;]*)?")


class Terminal:
    """Rows of text with ANSI colours; the cursor is at the end of what was written last."""

    def __init__(self) -> None:
        self.rows: list[str] = [""]
        self._at = 0
        self._rest = ""

    def write(self, text: str) -> None:
        """Take the output of a program, in pieces of any size."""
        text = self._rest + text
        self._rest = ""
        while text:
            if _BEGUN.fullmatch(text):
                self._rest = text
                return
            found = _SEQUENCE.match(text)
            if found is not None:
                self._control(found[1], found[2], found[0])
                text = text[found.end() :]
                continue
            self._character(text[0])
            text = text[1:]

    def last(self, height: int) -> tuple[str, ...]:
        """The rows that a window of this height shows."""
        return tuple(self.rows[-height:])

    def _character(self, character: str) -> None:
        if character == "\n":
            self._at += 1
            if self._at == len(self.rows):
                self.rows.append("")
        elif character == "\r":
            pass  # what follows is a line feed, or the row is erased
        elif character == "\x1b":
            raise ValueError("a control sequence of another kind")
        else:
            self.rows[self._at] += character

    def _control(self, values: str, command: str, whole: str) -> None:
        if command == "m":
            self.rows[self._at] += whole
        elif (values, command) == ("2", "K"):
            self.rows[self._at] = ""
        elif (values, command) == ("1", "A"):
            self._at -= 1
        elif (values, command) not in (("?25", "l"), ("?25", "h")):
            raise ValueError(f"unknown control sequence {whole!r}")
