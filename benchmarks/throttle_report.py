"""Tables for people and JSON for machines, from the same values."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.throttle_machine import Watched


@dataclass(frozen=True)
class Section:
    """The results of one part."""

    title: str
    note: str
    columns: tuple[str, ...]
    rows: Sequence[Sequence[str]]
    values: Any
    """All values, for the JSON."""


class Report:
    """Prints each section as a Markdown table when it is complete, and writes it to the JSON."""

    def __init__(self, facts: Mapping[str, Any], path: Path) -> None:
        self._facts = dict(facts)
        self._path = path
        print(", ".join(f"{name} {value}" for name, value in facts.items()), flush=True)

    def add(self, name: str, section: Section, watched: Watched) -> None:
        """Print a section; `watched` has the CPU use of other processes during the measurement."""
        machine = {**self._facts, "othersCores": round(watched.others, 2), "loadAtEnd": round(watched.load, 2)}
        self._write(name, {"title": section.title, "machine": machine, "values": section.values})
        print(f"\n### {section.title}\n\n{section.note}", end=" ")
        print(f"Others had {watched.others:.2f} cores meanwhile; load {watched.load:.1f} at the end.\n")
        for row in (section.columns, ["---"] * len(section.columns), *section.rows):
            print(f"| {' | '.join(row)} |")
        print(flush=True)

    def _write(self, name: str, values: Mapping[str, Any]) -> None:
        """Write to the JSON as soon as a part is measured; parts that are not run this time keep their values."""
        known = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._path.parent.mkdir(exist_ok=True)
        self._path.write_text(json.dumps({**known, name: values}, indent=1) + "\n")


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Median, minimum and maximum."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f})"
