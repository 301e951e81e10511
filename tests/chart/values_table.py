"""The table of values in the chart's README, generated from the comments in values.yaml."""

import json
import re
from pathlib import Path
from typing import Any

import yaml

_KEY = re.compile(r"( *)([A-Za-z]+):(?: .*)?")
_COMMENT = re.compile(r" *# (.*)")
_BEGIN, _END = "<!-- values: `make chart` writes them -->\n", "<!-- end of values -->\n"


def described(path: Path) -> dict[tuple[str, ...], str]:
    """The comment above each documented key, by the path of keys. Nested keys of it have none."""
    found: dict[tuple[str, ...], str] = {}
    above: list[str] = []
    keys: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        comment, key = _COMMENT.fullmatch(line), _KEY.fullmatch(line)
        if comment:
            above = [comment[1]] if comment[1].startswith("-- ") else [*above, comment[1]]
        elif key:
            keys = [*keys[: len(key[1]) // 2], key[2]]
            if above and above[0].startswith("-- "):
                found[tuple(keys)] = " ".join(above).removeprefix("-- ")
            above = []
        else:
            above = []
    return found


def undescribed(path: Path) -> list[str]:
    """Keys that are neither documented nor nested in a documented key."""
    known = described(path)
    return [".".join(keys) for keys in _leaves(yaml.safe_load(path.read_text(encoding="utf-8")), set(known))]


def table(path: Path) -> str:
    """The rows, in the order of the file."""
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    rows = ["| Value | Default | |", "| --- | --- | --- |"]
    for keys, text in described(path).items():
        default: Any = values
        for key in keys:
            default = default[key]
        rows.append(f"| `{'.'.join(keys)}` | `{json.dumps(default, ensure_ascii=False)}` | {text} |")
    return "\n".join(rows) + "\n"


def with_table(readme: str, path: Path) -> str:
    """The README with an up-to-date table."""
    head, _, rest = readme.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    return f"{head}{_BEGIN}{table(path)}{_END}{tail}"


def _leaves(values: Any, known: set[tuple[str, ...]], keys: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if keys in known:
        return []
    if not isinstance(values, dict) or not values:
        return [keys]
    return [leaf for key, value in values.items() for leaf in _leaves(value, known, (*keys, key))]
