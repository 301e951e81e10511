"""What a plan does to the log dirs of brokers, as text and as a document."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.table import Table

from kafka_rebalance.cli.tables.console import plain_table
from kafka_rebalance.cli.tables.phrases import counted
from kafka_rebalance.model.plan import PlannedPartition
from kafka_rebalance.model.reassignment_file import ANY_DIR
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.planning.log_dirs import DirMove, DirPlan
from kafka_rebalance.units import format_bytes

_MOST_ROWS = 40
_PADDING = (0, 1)

Places = Mapping[tuple[TopicPartition, BrokerId], str]


def places_of(plans: Iterable[DirPlan]) -> Places:
    """The log dirs of the replicas that move or are placed."""
    return {(move.tp, found.broker): move.after for found in plans for move in found.moves}


def log_dirs_row(p: PlannedPartition, places: Places) -> dict[str, list[str]]:
    """Kafka's ``log_dirs`` of a partition, if it has a replica that moves or is placed."""
    found = [places.get((p.tp, b), ANY_DIR) for b in p.target]
    return {"log_dirs": found} if set(found) != {ANY_DIR} else {}


def log_dir_cells(plans: Iterable[DirPlan]) -> Mapping[TopicPartition, str]:
    """``1: /a -> /b`` by partition, of the replicas that move, and ``1: /b`` of those that are placed."""
    found: defaultdict[TopicPartition, list[str]] = defaultdict(list)
    for of in plans:
        for move in of.moves:
            came = f"{move.before} -> " if move.before is not None else ""
            found[move.tp].append(f"{of.broker}: {came}{move.after}")
    return {tp: ", ".join(rows) for tp, rows in found.items()}


def partition_log_dirs(plans: Iterable[DirPlan], tp: TopicPartition) -> Sequence[tuple[DirPlan, DirMove]]:
    """The moves of one partition."""
    return [(found, move) for found in plans for move in found.moves if move.tp == tp]


def partition_sentences(moves: Sequence[tuple[DirPlan, DirMove]]) -> Iterable[str]:
    """To which log dir each replica of a partition moves, and why."""
    if not moves:
        yield "Its replicas stay in their log dirs."
    for found, move in moves:
        if move.before is None:
            yield f"The new replica on broker {found.broker} is placed in log dir {move.after}."
        else:
            which = f"The replica on broker {found.broker} moves from log dir {move.before} to {move.after}"
            yield f"{which} ({format_bytes(move.size)}): {_why(found, move)}."


def _why(found: DirPlan, move: DirMove) -> str:
    uses = {use.path: use for use in found.dirs}
    before = uses[move.before or move.after]
    if before.allowed is None:
        return f"{before.path} is drained"
    if before.before > before.allowed:
        return f"{before.path} is above its band"
    return f"exchanged for a replica of {move.after}, which is above its band"


def partition_log_dir_document(moves: Iterable[tuple[DirPlan, DirMove]]) -> list[dict[str, Any]]:
    """The moves of one partition; ``before`` is null for a new replica, whose bytes come from another broker."""
    return [
        {"broker": found.broker, "before": move.before, "after": move.after, "bytes": move.size}
        for found, move in moves
    ]


def log_dir_sentences(plans: Sequence[DirPlan]) -> Iterable[str]:
    """The moves between log dirs with their lower bound, and the log dirs that stay above the band."""
    moves = sum(move.before is not None for found in plans for move in found.moves)
    placed = sum(move.before is None for found in plans for move in found.moves)
    data, least = sum(found.data for found in plans), sum(found.least for found in plans)
    yield (
        f"{counted(moves, 'replica moves', 'replicas move')} between log dirs of a broker: {format_bytes(data)} to copy"
        f" (at least {format_bytes(least)} have to); {counted(placed, 'new replica is', 'new replicas are')} placed"
    )
    for found in plans:
        for use in found.dirs:
            if use.above is not None:
                yield f"log dir {use.path} of broker {found.broker} stays above its share: {use.above}"


def log_dir_table(plans: Sequence[DirPlan]) -> Table:
    """Bytes of the replicas in each log dir, those of brokers with moves first."""
    table = plain_table("BROKER", "LOG DIR", "BYTES", "BAND", padding=_PADDING)
    most_first = sorted(plans, key=lambda found: (-len(found.moves), found.broker))
    rows = [(found.broker, use) for found in most_first for use in found.dirs]
    for broker, use in rows[:_MOST_ROWS]:
        change = f"{format_bytes(use.before)} -> {format_bytes(use.after)}"
        table.add_row(str(broker), use.path, change, "drained" if use.allowed is None else format_bytes(use.allowed))
    if len(rows) > _MOST_ROWS:
        table.add_row(f"… {len(rows) - _MOST_ROWS} more: -o json")
    return table


def log_dir_document(plans: Sequence[DirPlan]) -> dict[str, Any]:
    """Every log dir, in bytes."""
    return {
        "moves": sum(move.before is not None for found in plans for move in found.moves),
        "placed": sum(move.before is None for found in plans for move in found.moves),
        "dataToMove": sum(found.data for found in plans),
        "dataLowerBound": sum(found.least for found in plans),
        "brokers": [
            {
                "id": found.broker,
                "logDirs": [
                    {"path": use.path, "before": use.before, "after": use.after, "allowed": use.allowed}
                    | ({"above": use.above.value} if use.above is not None else {})
                    for use in found.dirs
                ],
            }
            for found in plans
        ],
    }
