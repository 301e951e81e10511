"""YAML as kubectl reads it: dates and times of day are text. Knows no resource."""

from __future__ import annotations

import re
from typing import Any

import yaml

_MAX_ALIASED = 3 * 2**20
"""Characters that aliases may add, all told. The API server takes no more than so many bytes at once."""
_TEXT = "tag:yaml.org,2002:str"
_TIME = "tag:yaml.org,2002:timestamp"
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?$")


class _Loader(yaml.SafeLoader):
    """Plain values only, and no key twice in one mapping: YAML forbids it, and PyYAML takes the last.

    Aliases of aliases, which a few lines have stand for more than any memory holds, are refused before anything is
    made of them.
    """

    yaml_implicit_resolvers = {  # noqa: RUF012 - PyYAML's own, in which it looks by the first character
        first: [(_TEXT, _SEXAGESIMAL), *(known for known in resolvers if known[0] != _TIME)]
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


def _placed(broken: yaml.MarkedYAMLError) -> str:
    mark = broken.problem_mark
    where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
    return where + ", ".join(filter(None, (broken.problem, broken.context)))
