"""The brokers, flows and partitions of a report, from a plan and, where it is known, the whole cluster. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from kafka_rebalance.model.cluster_file import ClusterFile
from kafka_rebalance.model.plan import Plan, PlannedPartition
from kafka_rebalance.model.topology import Broker, BrokerId, Replicas, TopicPartition
from kafka_rebalance.report.load_contents import load_facts, load_risks
from kafka_rebalance.report.report_contents import BeforeAfter, BrokerRow, CopyFlow, Fact, PartitionRow
from kafka_rebalance.units import format_bytes

Lists = Mapping[TopicPartition, Replicas]
_UNEVEN = "racks and replication factors can make equal counts impossible"
_FULL = 0.8
_NAMED = 5


def broker_rows(
    plan: Plan,
    brokers: Iterable[Broker],
    lists: Lists,
    sizes: Mapping[TopicPartition, int],
    targets: frozenset[BrokerId] | None = None,
) -> tuple[BrokerRow, ...]:
    """Every known broker and every other one that holds a replica, by rack and id.

    ``lists``: those of the whole cluster, or empty; the lists of the plan come first. ``targets`` None: all of them.
    """
    rack = {broker.id: broker.rack for broker in brokers}
    current = {**lists, **{p.tp: p.current for p in plan.partitions}}
    target = {**lists, **{p.tp: p.target for p in plan.partitions}}
    size = {**{p.tp: p.size_bytes for p in plan.partitions}, **sizes}
    before, after = _held(current, size), _held(target, size)
    found = sorted(
        rack.keys() | before.keys() | after.keys(), key=lambda b: (rack.get(b) is None, rack.get(b) or "", b)
    )
    none = [0, 0, 0]
    return tuple(
        BrokerRow(
            b,
            rack.get(b),
            b in targets if targets is not None else True,
            *(BeforeAfter(*pair) for pair in zip(before.get(b, none), after.get(b, none), strict=True)),
        )
        for b in found
    )


def copy_flows(partitions: Iterable[PlannedPartition]) -> tuple[CopyFlow, ...]:
    """What is copied from each broker to each: a new replica fetches from the leader, the first of the current list."""
    found: defaultdict[tuple[BrokerId, BrokerId], list[int]] = defaultdict(lambda: [0, 0])
    for p in partitions:
        for broker in p.added:
            flow = found[p.current[0], broker]
            flow[0] += 1
            flow[1] += p.size_bytes
    return tuple(CopyFlow(*key, *numbers) for key, numbers in sorted(found.items()))


def partition_rows_of(plan: Plan, why: Mapping[TopicPartition, int]) -> tuple[PartitionRow, ...]:
    """The partitions that change, largest copies first."""
    rows = [PartitionRow(p.tp, p.current, p.target, p.size_bytes, why.get(p.tp, -1)) for p in plan.partitions]
    added = {p.tp: p.size_bytes * len(p.added) for p in plan.partitions}
    return tuple(sorted(rows, key=lambda row: (-added[row.tp], row.tp)))


def plan_facts_of(plan: Plan) -> list[Fact]:
    """The figures of a plan, with what is proved."""
    facts = [
        Fact("Replica moves", f"{plan.replica_moves} ({_proof(plan)})"),
        Fact("Data to copy", format_bytes(plan.data_to_move_bytes)),
        Fact("Partitions that change", str(plan.changed)),
        Fact("Preferred leaders that change", str(plan.leader_moves)),
    ]
    if plan.before is not None and plan.after is not None:
        before, after = plan.before, plan.after
        text = f"{before.fewest} to {before.most} before, {after.fewest} to {after.most} after"
        if after.most - after.fewest > 1:
            limited = "limited by the movement budget" if plan.imbalance is not None else _UNEVEN
            text += f" ({limited})"
        facts.append(Fact("Replicas per broker", text))
    if plan.log_dir_moves:
        text = f"{plan.log_dir_moves}, {format_bytes(plan.log_dir_bytes)}"
        facts.append(Fact("Moves between log dirs", text))
    if plan.load is not None:
        facts += load_facts(plan.load)
    return [*facts, Fact("Plan", plan.hash, code=True)]


def _proof(plan: Plan) -> str:
    bound, optimal = plan.certificate.lower_bound, plan.certificate.optimal
    if plan.imbalance is not None:
        within = "the movement budget"
        return (
            f"proved: no plan within {within} balances better"
            if optimal
            else f"not proved to be the best within {within}"
        )
    if optimal:
        return "proved: no plan that balances as well needs fewer"
    return f"at least {bound} are needed" if bound else "nothing is proved"


def disks_of(cluster: ClusterFile) -> dict[BrokerId, int]:
    """The disk sizes in the file, in bytes."""
    return {broker: capacity.disk for broker, capacity in cluster.capacities.items() if capacity.disk}


def risks_of(plan: Plan, rows: Sequence[BrokerRow], disks: Mapping[BrokerId, int], unknown_sizes: int) -> list[str]:
    """Sentences on what to look at before the plan is approved. ``disks``: sizes, where all replicas are known."""
    found = []
    if plan.rack_violations:
        found.append(f"{plan.rack_violations} replicas still share a rack with another one of their partition.")
    if unknown_sizes:
        found.append(f"The sizes of {unknown_sizes} partitions are not known, so the data to copy is more than shown.")
    if plan.imbalance is not None:
        found.append("The movement budget is reached: the brokers are less even than more moves would make them.")
    if plan.load is not None:
        found += load_risks(plan.load)
    found += [f"{sentence[0].upper()}{sentence[1:]}." for sentence in plan.crowded]
    if plan.skipped:
        found.append(f"{len(plan.skipped)} partitions are left alone, for example {plan.skipped[0].tp}.")
    shrinking = [p.tp for p in plan.partitions if len(p.target) < len(p.current)]
    if shrinking:
        found.append(f"{len(shrinking)} partitions end with fewer replicas, for example {shrinking[0]}.")
    return found + _full_disks(rows, disks)


def _full_disks(rows: Sequence[BrokerRow], disks: Mapping[BrokerId, int]) -> list[str]:
    full = [r for r in rows if r.broker in disks and r.size_bytes.after > _FULL * disks[r.broker]]
    named = ", ".join(f"{r.broker} ({r.size_bytes.after / disks[r.broker]:.0%})" for r in full[:_NAMED])
    more = f" and {len(full) - _NAMED} more" if len(full) > _NAMED else ""
    return [f"Disks above {_FULL:.0%} after the plan: broker {named}{more}."] if full else []


def _held(lists: Lists, size: Mapping[TopicPartition, int]) -> dict[BrokerId, list[int]]:
    """By broker: replicas, leaderships, bytes."""
    found: defaultdict[BrokerId, list[int]] = defaultdict(lambda: [0, 0, 0])
    for tp, replicas in lists.items():
        held = size.get(tp, 0)
        for broker in replicas:
            tally = found[broker]
            tally[0] += 1
            tally[2] += held
        if replicas:
            found[replicas[0]][1] += 1
    return found
