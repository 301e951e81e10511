"""Which runs rest, and what others have done to their partitions meanwhile. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from kafka_rebalance.execution.log_dir_moves import LogDirReading
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, TopicPartition
from kafka_rebalance.reconcile.state.rebalance import RebalanceView
from kafka_rebalance.reconcile.state.record import LoadedRun, on_record


@dataclass(frozen=True, slots=True)
class NeededReadings:
    """What has to be read before rests end. ``absent``: partitions that the last reading of everything lacks."""

    topics: frozenset[str]
    absent: frozenset[TopicPartition]
    replicas: frozenset[ReplicaKey]
    brokers: frozenset[BrokerId]


def needed_readings(
    rebalances: Iterable[RebalanceView], partitions: Mapping[TopicPartition, PartitionState]
) -> NeededReadings:
    """The topics and partitions of the origins of these runs, and the replicas that they may have moved on a broker."""
    origins, replicas = set[TopicPartition](), set[ReplicaKey]()
    for rebalance in rebalances:
        origins |= rebalance.record.origins.keys()
        replicas |= replicas_with_log_dirs(rebalance)
    return NeededReadings(
        topics=frozenset([tp.topic for tp in origins]),
        absent=frozenset([tp for tp in origins if tp not in partitions]),
        replicas=frozenset(replicas),
        brokers=frozenset([broker for _, broker in replicas]),
    )


def replicas_with_log_dirs(rebalance: RebalanceView) -> set[ReplicaKey]:
    """The replicas that the run may have moved between log dirs."""
    run, found = rebalance.record.loaded_run, set[ReplicaKey]()
    for tp, row in rebalance.record.origins.items():
        found |= {(tp, broker) for broker, _ in row.log_dirs or ()}
    earlier = {tp for tp, row in rebalance.record.origins.items() if row.log_dirs is None}
    return found | {move.key for move in run.log_dirs if move.tp in earlier} if run is not None else found


def moved_by_others(
    rebalance: RebalanceView, partitions: Mapping[TopicPartition, PartitionState], log_dirs: LogDirReading
) -> dict[Origin, Origin | None]:
    """The origins that do not count any more after a rest, each with what counts instead; None: nothing does.

    Nothing of the run was in flight when it came to rest. So a reassignment or a copy between log dirs that is in
    flight now is one of others, and so is a larger replication factor than the run ever leaves. ``log_dirs``: a
    reading of ``replicas_with_log_dirs``. A broker that it lacks is down, and may come back with a copy of others. If
    others have moved a partition between brokers of the plan, and it has arrived, its list does not show that.
    """
    gone = dict[Origin, Origin | None]()
    if (run := rebalance.record.loaded_run) is None:
        return gone
    copied = defaultdict[TopicPartition, set[BrokerId]](set)
    """Where others copy the partition between log dirs, or may do so."""
    for tp, broker in replicas_with_log_dirs(rebalance):
        place = log_dirs.places.get((tp, broker))
        if broker not in log_dirs.brokers or (place is not None and place.future is not None):
            copied[tp].add(broker)
    for tp, row in rebalance.record.origins.items():
        if (state := partitions.get(tp)) is None or on_record(tp, state.topic_id, {tp: row}) is None:
            continue
        if state.in_flight or len(state.replicas) > max(_sizes(row, run)):
            gone[row] = None
        elif tp in copied:
            gone[row] = replace(row, log_dirs=tuple(at for at in row.log_dirs or () if at[0] not in copied[tp]))
    return gone


def takes_part(rebalance: RebalanceView, now: float) -> bool:
    """Whether a round is to observe the run, and may send something for it. ``now``: seconds of the monotonic clock.

    Not in the pause after a problem, and not while its rest is to be ended first.
    """
    return rebalance.record.loaded_run is not None and not rebalance.memory.blocked(now) and not rebalance.waits_at_rest


def _sizes(row: Origin, run: LoadedRun) -> Iterable[int]:
    yield len(row.replicas)
    if (move := run.move_of.get(row.tp)) is not None:
        yield from (len(move.origin), len(move.planned_from), len(move.target))
