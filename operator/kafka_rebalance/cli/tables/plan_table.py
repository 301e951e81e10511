"""Prints a plan as text: the changes, the result per broker, and the cost."""

from collections import Counter
from collections.abc import Mapping, Sequence

from rich.table import Table

from kafka_rebalance.cli.tables.console import plain_console, plain_table
from kafka_rebalance.cli.tables.load_table import load_sentences, load_table
from kafka_rebalance.cli.tables.log_dir_table import log_dir_cells, log_dir_sentences, log_dir_table
from kafka_rebalance.cli.tables.phrases import counted, ids, proof
from kafka_rebalance.model.plan import Plan, PlannedPartition
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.planning import PlanRequest
from kafka_rebalance.planning.log_dirs import DirPlan
from kafka_rebalance.units import format_bytes

_PADDING = (0, 1)


def print_plan(
    made: Plan,
    request: PlanRequest,
    shown: Sequence[PlannedPartition],
    sizes: Mapping[TopicPartition, int],
    seconds: float,
    dir_plans: Sequence[DirPlan] = (),
) -> None:
    """``shown`` are the partitions to list; ``sizes`` (bytes) lacks those of unknown size."""
    console = plain_console()
    if shown:
        console.print(_changes(shown, dir_plans), "")
    console.print(_brokers(made, request), "")
    if made.load is not None:
        console.print(load_table(made.load), "")
        for sentence in load_sentences(made.load):
            console.print(sentence)
    if dir_plans:
        console.print(log_dir_table(dir_plans), "")
        for sentence in log_dir_sentences(dir_plans):
            console.print(sentence)
    if request.partitions and not made.partitions and not any(found.moves for found in dir_plans):
        console.print(made.reason or "balanced already", ": nothing to move", sep="")
    between = " between brokers" if dir_plans else ""
    moves = counted(made.replica_moves, "replica move")
    proved = proof(made.certificate, budget_reached=made.imbalance is not None)
    console.print(f"{moves}{between} ({proved}), {_to_copy(made, sizes)}")
    if (most := request.goals.max_replica_moves) is not None and made.replica_moves >= most > 0:
        console.print(f"goals.maxReplicaMoves ({most}) is used up: `explain` says how many moves full balance takes")
    console.print(f"{made.leader_moves} preferred leaders change, {made.rack_violations} rack violations remain")
    console.print(f"planned in {seconds:.2f} s, {made.hash}", soft_wrap=True)


def _changes(shown: Sequence[PlannedPartition], dir_plans: Sequence[DirPlan]) -> Table:
    places = log_dir_cells(dir_plans)
    columns = ("TOPIC-PARTITION", "CURRENT", "TARGET", "NEW REPLICAS", *(("LOG DIRS",) if places else ()))
    table = plain_table(*columns, padding=_PADDING)
    for p in shown:
        of_dirs = (places.get(p.tp, "-"),) if places else ()
        table.add_row(str(p.tp), ids(p.current), ids(p.target), ids(p.added) or "-", *of_dirs)
    return table


def _brokers(made: Plan, request: PlanRequest) -> Table:
    targets = {p.tp: p.target for p in made.partitions}
    before = [p.replicas for p in request.partitions]
    after = [targets.get(p.tp, p.replicas) for p in request.partitions]
    counts = [Counter(b for row in rows for b in row) for rows in (before, after)]
    leaders = [Counter(row[0] for row in rows) for rows in (before, after)]
    table = plain_table("BROKER", "RACK", "REPLICAS", "LEADERS", padding=_PADDING)
    racks = {b.id: b.rack for b in request.brokers}
    for b in sorted(racks.keys() | counts[0].keys()):
        replicas, leading = (f"{old[b]} -> {new[b]}" for old, new in (counts, leaders))
        table.add_row(str(b), racks.get(b) or "-", replicas, leading)
    return table


def _to_copy(made: Plan, sizes: Mapping[TopicPartition, int]) -> str:
    copied = [p for p in made.partitions if p.added]
    unknown = sum(p.tp not in sizes for p in copied)
    if unknown and unknown == len(copied):
        return "size unknown"
    known = f"{format_bytes(made.data_to_move_bytes)} to copy"
    return f"at least {known} (sizes of {unknown} partitions unknown)" if unknown else known
