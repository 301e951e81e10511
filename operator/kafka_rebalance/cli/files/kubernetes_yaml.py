"""YAML as kubectl reads it: read just so, and written so that text stays text. Knows no resource.

Kubernetes' programs read YAML 1.1 as Go's library has it: beyond what PyYAML takes for numbers and booleans ``12e3``,
``08``, ``0o17`` and ``y`` are some, dates and times of day are text, and a whole number is an integer however it is
written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import yaml

_MAX_ALIASED = 3 * 2**20
"""Characters that aliases may add, all told. The API server takes no more than so many bytes at once."""
_MAX_WHOLE = 10**21
"""From here on Go writes a whole number with an exponent, and nobody takes it for an integer."""

_TEXT, _BOOL, _INT, _FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "bool", "int", "float"))
_TEXT_THERE = {f"tag:yaml.org,2002:{kind}" for kind in ("timestamp", "value")}
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$")
_MORE: tuple[tuple[str, re.Pattern[str], str], ...] = (
    (_BOOL, re.compile(r"[yYnN]$"), "yYnN"),
    (_INT, re.compile(r"[-+]?0([xX][0-9a-fA-F_]+|[bB][01_]+|[oO][0-7_]+)$"), "-+0"),
    (
        _FLOAT,
        re.compile(r"[-+]?(\.[0-9][0-9_]*|[0-9][0-9_]*(\.[0-9_]*)?)([eE][-+]?[0-9][0-9_]*)?$"),
        "-+.0123456789",
    ),
)
"""What Go's library takes for something else than text, and PyYAML does not: tag, form and first characters."""
_LETTERS = {"y": True, "n": False}


class _Dumper(yaml.SafeDumper):
    """Quotes what either library would take for something else than text."""


class _Loader(yaml.SafeLoader):
    """Plain values only, and no key twice in one mapping: YAML forbids it, and PyYAML takes the last.

    Aliases of aliases, which a few lines have stand for more than any memory holds, are refused before anything is
    made of them.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own, in which it looks by the first character
        first: [(_TEXT, _SEXAGESIMAL), *(known for known in resolvers if known[0] not in _TEXT_THERE)]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def __init__(self, stream: bytes) -> None:
        super().__init__(stream)
        self._composed = self._aliased = 0
        self._sizes: dict[int, int] = {}

    def construct_document(self, node: yaml.Node) -> Any:
        """Inside out, so that an alias of what it stands in is refused: nobody could walk through that."""
        self.deep_construct = True
        return super().construct_document(node)

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Counts the characters of each node as if all aliases in it were written out."""
        alias = self.check_event(yaml.AliasEvent)
        mark, before = self.peek_event().start_mark, self._composed  # type: ignore[no-untyped-call]
        node = super().compose_node(parent, index)
        if alias:
            added = self._sizes.get(id(node), 0)  # none of what it stands in itself: that is refused later
            self._composed, self._aliased = self._composed + added, self._aliased + added
            if self._aliased > _MAX_ALIASED:
                raise yaml.MarkedYAMLError(
                    problem=f"aliases make more than {_MAX_ALIASED} characters", problem_mark=mark
                )
        else:
            self._composed += 1 + (len(node.value) if isinstance(node, yaml.ScalarNode) else 0)
            self._sizes[id(node)] = self._composed - before
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Checked as written, before merge keys (``<<``) bring in what may be repeated on purpose."""
        mapping = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode):
                if (key.tag, key.value) in seen:
                    raise yaml.MarkedYAMLError(problem=f"key {key.value!r} is given twice", problem_mark=key.start_mark)
                seen.add((key.tag, key.value))
        return mapping


def _bool(loader: _Loader, node: yaml.ScalarNode) -> bool:
    letter = _LETTERS.get(node.value.lower())
    return bool(loader.construct_yaml_bool(node)) if letter is None else letter


def _integer(_loader: _Loader, node: yaml.ScalarNode) -> int:
    text = node.value.replace("_", "")
    digits = text.lstrip("+-")
    count = int(digits, 8) if digits.isdecimal() and digits.startswith("0") else int(digits, 0)
    return -count if text.startswith("-") else count


def _number(loader: _Loader, node: yaml.ScalarNode) -> float:
    number = float(loader.construct_yaml_float(node))
    return int(number) if number.is_integer() and abs(number) < _MAX_WHOLE else number


for _tag, _form, _first in _MORE:
    _Loader.add_implicit_resolver(_tag, _form, list(_first))
    _Dumper.add_implicit_resolver(_tag, _form, list(_first))
_Loader.add_constructor(_BOOL, _bool)
_Loader.add_constructor(_INT, _integer)
_Loader.add_constructor(_FLOAT, _number)


def load_all(data: bytes) -> list[Any]:
    """The documents of a file, without empty ones. ValueError says what is wrong, with the line where it can."""
    try:
        return [found for found in yaml.load_all(data, _Loader) if found is not None]
    except yaml.MarkedYAMLError as broken:
        raise ValueError(f"not YAML: {_placed(broken)}") from broken
    except yaml.YAMLError as broken:
        raise ValueError(f"not YAML: {broken}") from broken
    except RecursionError as deep:
        raise ValueError("not YAML: nested too deeply") from deep


def dump_all(documents: Iterable[Any]) -> str:
    """The documents as a file, each value on one line."""
    text: str = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=2**31)
    return text


def _placed(broken: yaml.MarkedYAMLError) -> str:
    mark = broken.problem_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return where + ", ".join(filter(None, (broken.problem, broken.context)))
