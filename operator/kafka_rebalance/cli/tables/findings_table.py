"""The findings of doctor, as tables and as JSON."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from kafka_rebalance.cli.tables.console import plain_console, plain_table


@dataclass(frozen=True, slots=True)
class Finding:
    """One problem. ``reason`` is CamelCase, as in a condition; all findings of a reason have the same ``meaning``.

    ``row`` is its row in the table of its reason, by column; ``fields`` is the same for JSON. ``mended``: it was fixed.
    """

    reason: str
    meaning: str
    row: Mapping[str, str]
    fields: Mapping[str, Any]
    mended: bool = False


def document(findings: Sequence[Finding]) -> dict[str, Any]:
    """All findings as a document."""
    rows = [{"reason": found.reason, **found.fields, "mended": found.mended} for found in findings]
    return {"findings": rows}


def print_findings(findings: Sequence[Finding]) -> None:
    """A table for each reason, in the given order, with the meaning below it."""
    console = plain_console()
    for reason, group in groupby(findings, key=lambda found: found.reason):
        rows = list(group)
        table = plain_table(*rows[0].row)
        for found in rows:
            table.add_row(*found.row.values())
        console.print(table, "")
        mended = sum(found.mended for found in rows)
        count = f"{len(rows)}, {mended} fixed" if mended else f"{len(rows)}"
        console.print(f"{reason} ({count}): {rows[0].meaning}")
