"""A rule of the project, and the tests that fail when it is broken."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BrokenRule:
    """``find`` holds the rule and occurs once in ``file``, a path inside the package.

    With ``replacement`` in its place the code still runs, and the rule no longer holds. ``caught_by`` are tests of
    `make test`; each of them then fails.
    """

    name: str
    rule: str
    file: str
    find: str
    replacement: str
    caught_by: tuple[str, ...]
