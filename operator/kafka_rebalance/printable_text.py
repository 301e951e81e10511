"""Text of others that people see: names of servers, values of resources and files. It must not control a terminal."""

import unicodedata

_CONTROLS = {"Cc", "Cf", "Cs", "Zl", "Zp"}
"""Unicode categories: control characters, invisible ones such as marks of direction, surrogates, separators of lines
and paragraphs. Any other character is printable, also a space that is not ASCII."""


def is_printable(text: str) -> bool:
    """Whether no character of the text controls a terminal, begins a line or is invisible."""
    return text.isprintable() or not any(unicodedata.category(char) in _CONTROLS for char in text)


def printable(text: str, kept: str = "") -> str:
    """With escapes (``\\x1b``) for characters that are not printable, except for those in ``kept``."""
    if is_printable(text):
        return text
    return "".join(
        char if is_printable(char) or char in kept else char.encode("unicode_escape").decode() for char in text
    )
