"""What a plan does to the load of brokers, as text and as a document."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from rich.table import Table

from kafka_rebalance.cli.tables.console import plain_table
from kafka_rebalance.cli.tables.phrases import counted
from kafka_rebalance.model.load_outcome import LoadOutcome
from kafka_rebalance.units import format_bytes

_MOST_BROKERS = 20
_PADDING = (0, 1)


def load_sentences(found: LoadOutcome) -> Iterable[str]:
    """The fullest broker of each resource, the bytes with their bound, and who stays outside."""
    for row in found.resources:
        yield (
            f"{row.resource}: fullest broker {row.peak_before:.0f}% -> {row.peak_after:.0f}% of its share, "
            f"{row.outside_before} -> {row.outside_after} brokers more than {row.band}% above theirs"
        )
    yield f"copies {found.gap:.2f} times the lower bound of {format_bytes(found.data_lower_bound)} for this"
    for left in found.outside[:_MOST_BROKERS]:
        yield f"broker {left.broker} stays above its share of {left.resource}: {left.reason}"
    if (more := sum(row.outside_after for row in found.resources) - _MOST_BROKERS) > 0:
        yield f"{counted(more, 'more broker')} above: -o json"


def load_table(found: LoadOutcome) -> Table:
    """The use of brokers in percent of their shares, those first that are or were the furthest above."""
    table = plain_table("BROKER", *(row.resource.upper() for row in found.resources), padding=_PADDING)
    used = []
    for at, broker in enumerate(found.brokers):
        ends = [(row.shares[at], row.before[at], row.after[at]) for row in found.resources]
        used.append((broker, [(_percent(before, share), _percent(after, share)) for share, before, after in ends]))
    used.sort(key=lambda row: -max(max(pair) for pair in row[1]))
    for b, pairs in used[:_MOST_BROKERS]:
        table.add_row(str(b), *(f"{before}% -> {after}%" for before, after in pairs))
    if len(used) > _MOST_BROKERS:
        table.add_row(f"… {len(used) - _MOST_BROKERS} more: -o json")
    return table


def load_document(found: LoadOutcome) -> dict[str, Any]:
    """Every broker, in the units of the resources."""
    return {
        "dataToMove": found.data,
        "dataLowerBound": found.data_lower_bound,
        "gap": round(found.gap, 4),
        "resources": [
            {
                "name": row.resource.value,
                "band": row.band,
                "peakBefore": round(row.peak_before, 2),
                "peakAfter": round(row.peak_after, 2),
                "outsideBefore": row.outside_before,
                "outsideAfter": row.outside_after,
                "brokers": [
                    {"id": b, "share": share, "before": before, "after": after}
                    for b, share, before, after in zip(found.brokers, row.shares, row.before, row.after, strict=True)
                ],
            }
            for row in found.resources
        ],
        "outside": [
            asdict(row) | {"resource": row.resource.value, "reason": row.reason.value} for row in found.outside
        ],
    }


def _percent(use: int, share: int) -> int:
    return round(100 * use / share) if share else 0
