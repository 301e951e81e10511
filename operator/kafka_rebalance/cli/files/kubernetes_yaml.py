"""YAML documents for Kubernetes: reads a file, refuses what is ambiguous or too large, and writes text as text."""

import re
from collections.abc import Iterable
from typing import Any

import yaml

_MAX_BYTES = 3 * 2**20
"""The API server takes no larger request."""
_MAX_ALIASES = 12
"""Aliases of aliases grow exponentially; with this many, the largest file stays below 250 MiB."""


class _Loader(yaml.SafeLoader):
    """Refuses a key that occurs twice in a mapping, where PyYAML keeps the last. Dates stay text, as in kubectl."""

    aliases = 0
    yaml_implicit_resolvers = {  # noqa: RUF012 - overrides PyYAML's attribute
        first: [resolver for resolver in resolvers if resolver[0] != "tag:yaml.org,2002:timestamp"]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            self.aliases += 1
            if self.aliases > _MAX_ALIASES:
                mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
                raise yaml.MarkedYAMLError(problem=f"more than {_MAX_ALIASES} aliases", problem_mark=mark)
        return super().compose_node(parent, index)

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        """Checks the keys as written: a key that ``<<`` merges in may be overridden."""
        mapping = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in mapping.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    raise yaml.MarkedYAMLError(problem=f"duplicate key {key.value!r}", problem_mark=key.start_mark)
                seen.add(key.value)
        return mapping


class _Dumper(yaml.SafeDumper):
    """Quotes text that kubectl would read as a number or a boolean and PyYAML would not: ``12e3``, ``0o17``, ``y``."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


_Dumper.add_implicit_resolver(
    "tag:yaml.org,2002:float", re.compile(r"[yYnN]$|[-+]?\.?[0-9].*$"), list("yYnN-+.0123456789")
)


def load_all(data: bytes) -> list[Any]:
    """The documents of a file, without empty ones. ValueError says what is wrong, with the line where known."""
    if len(data) > _MAX_BYTES:
        raise ValueError(f"larger than {_MAX_BYTES} bytes")
    try:
        return [found for found in yaml.load_all(data, _Loader) if found is not None]
    except yaml.MarkedYAMLError as broken:
        mark = broken.problem_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        said = ", ".join(filter(None, (broken.problem, broken.context)))
        raise ValueError(f"not YAML: {where}{said}") from broken
    except (yaml.YAMLError, ValueError) as broken:
        raise ValueError(f"not YAML: {broken}") from broken
    except RecursionError as deep:
        raise ValueError("not YAML: nested too deeply") from deep


def dump_all(documents: Iterable[Any]) -> str:
    """The documents as a file, each value on one line."""
    text: str = yaml.dump_all(documents, Dumper=_Dumper, sort_keys=False, width=2**31)
    return text
