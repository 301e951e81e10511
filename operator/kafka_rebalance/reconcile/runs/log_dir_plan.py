"""Adds to a plan what moves between the log dirs of brokers, by their sizes as they are now. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from kafka_rebalance.api.log_dir_goals import LogDirGoals
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.log_dir_moves import DirShift, without_room
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.plan import LogDirMove, Plan, PlannedPartition, joined_log_dirs
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, TopicPartition
from kafka_rebalance.planning.log_dirs import BrokerDirs, DirReplica, even_log_dirs
from kafka_rebalance.reasons import Reason

_RETRY_SECONDS = 15.0
Dirs = Mapping[BrokerId, Collection[LogDir]]


@dataclass(frozen=True, slots=True)
class LogDirInputs:
    """What is read before. ``live``: the brokers that are up; ``dirs``: of those that answered.

    ``pinned``: the topics that stay. ``earlier``: what earlier plans of the run have moved between log dirs.
    """

    live: frozenset[BrokerId]
    dirs: Dirs
    selected: Mapping[TopicPartition, PartitionState]
    pinned: Collection[str]
    partitions: Mapping[TopicPartition, PartitionState]
    earlier: Mapping[ReplicaKey, LogDirMove]


def with_log_dirs(made: Plan, spec: KafkaRebalanceSpec, inputs: LogDirInputs) -> Plan:
    """The plan with its moves between log dirs, and those of earlier plans that a rollback has to know.

    Refused names the field, the broker and the log dir. Transient("LogDirsUnknown") while a broker does not answer.
    """
    found: list[LogDirMove] = []
    if (goals := spec.goals.log_dirs) is not None:
        brokers = _brokers(spec, goals, inputs)
        drained = _drained(goals, brokers, inputs.dirs)
        movable = _movable(made, inputs)
        for broker in sorted(brokers):
            found += _moves_of(broker, made, goals.band, drained.get(broker, frozenset()), movable, inputs.dirs[broker])
    kept = {key: row for key, e in inputs.earlier.items() if (row := _kept(e, inputs)) is not None}
    since = joined_log_dirs(inputs.earlier, found)
    moves = kept | {move.key: since[move.key] for move in found}
    named = {p.tp for p in made.partitions}
    staying = {tp: inputs.partitions[tp] for tp, _ in moves if tp not in named and tp in inputs.partitions}
    rows = (PlannedPartition(tp, s.replicas, s.replicas, s.topic_id) for tp, s in staying.items())
    partitions = tuple(sorted((*made.partitions, *rows))) if staying else made.partitions
    known = named | staying.keys()
    return replace(
        made, partitions=partitions, log_dirs=tuple(move for key, move in sorted(moves.items()) if key[0] in known)
    )


def _brokers(spec: KafkaRebalanceSpec, goals: LogDirGoals, inputs: LogDirInputs) -> frozenset[BrokerId]:
    """The brokers whose log dirs are evened or drained: those that may hold replicas, and have answered."""
    for at, row in enumerate(goals.drain):
        if row.broker not in inputs.live:
            where = f"spec.goals.logDirs.drain[{at}]"
            raise Refused(Reason.UNKNOWN_BROKER, f"{where}: there is no live broker {row.broker}")
    wanted = {BrokerId(b) for b in spec.brokers.include} & inputs.live or set(inputs.live)
    wanted -= {BrokerId(b) for b in spec.brokers.decommission}
    wanted |= {BrokerId(row.broker) for row in goals.drain}
    if silent := sorted(wanted - inputs.dirs.keys()):
        names = ", ".join(str(b) for b in silent)
        said = f"broker {names} does not describe its" if len(silent) == 1 else f"brokers {names} do not describe their"
        message = f"{said} log dirs: the plan waits for that. If it lasts, see the log of the broker"
        raise Transient(Reason.LOG_DIRS_UNKNOWN, message, _RETRY_SECONDS)
    return frozenset(wanted)


def _drained(goals: LogDirGoals, brokers: Iterable[BrokerId], dirs: Dirs) -> dict[BrokerId, frozenset[str]]:
    found: defaultdict[BrokerId, set[str]] = defaultdict(set)
    for at, row in enumerate(goals.drain):
        where, broker = f"spec.goals.logDirs.drain[{at}]", BrokerId(row.broker)
        there = {log_dir.path for log_dir in dirs[broker]}
        if row.path not in there:
            online = ", ".join(sorted(there)) or "none"
            message = f"{where}: broker {broker} has no log dir {row.path} online; it has: {online}"
            raise Refused(Reason.UNKNOWN_LOG_DIR, message)
        found[broker].add(row.path)
        if found[broker] >= there:
            message = f"{where}: broker {broker} has no other log dir; to empty a broker, use spec.brokers.decommission"
            raise Refused(Reason.LAST_LOG_DIR, message)
    return {broker: frozenset(found[broker]) for broker in brokers}


def _movable(made: Plan, inputs: LogDirInputs) -> frozenset[TopicPartition]:
    skipped = {row.tp for row in made.skipped}
    return frozenset(
        tp
        for tp, state in inputs.selected.items()
        if not state.in_flight and tp not in skipped and tp.topic not in inputs.pinned
    )


def _moves_of(
    broker: BrokerId,
    made: Plan,
    band: int,
    drained: frozenset[str],
    movable: Collection[TopicPartition],
    dirs: Collection[LogDir],
) -> list[LogDirMove]:
    """Of one broker; none if it has a single log dir."""
    if len(dirs) < 2:
        return []
    leaving = {p.tp for p in made.partitions if broker in p.current and broker not in p.target}
    future = {tp: log_dir.path for log_dir in dirs for tp in log_dir.future_bytes}
    held, moves = [], []
    for log_dir in dirs:
        for tp, size in log_dir.replica_bytes.items():
            if tp in leaving:
                moves.append(LogDirMove(tp, broker, log_dir.path, None, log_dir.path, size))
                continue
            # Where another tool moves it to is where it counts, and that is left to that tool.
            pinned = tp not in movable or tp in future
            held.append(DirReplica(tp, size, future.get(tp, log_dir.path), pinned))
    coming = [DirReplica(p.tp, p.size_bytes, None) for p in made.partitions if broker in p.added]
    totals = {log_dir.path: log_dir.total_bytes if log_dir.total_bytes > 0 else None for log_dir in dirs}
    found = even_log_dirs(BrokerDirs(broker, totals, drained, (*held, *coming)), band).moves
    shifts = [DirShift(move.tp, move.before, move.after, move.size) for move in found]
    room = {log_dir.path: log_dir.usable_bytes for log_dir in dirs if log_dir.usable_bytes >= 0}
    if full := without_room(shifts, room):
        message = f"log dir {full[0]} of broker {broker} has no room for what spec.goals.logDirs moves there"
        raise Refused(Reason.INSUFFICIENT_DISK, f"{message}, in no order of the copies: free space there first")
    return moves + [LogDirMove(m.tp, broker, m.before, m.after, m.before, m.size) for m in found]


def _kept(move: LogDirMove, inputs: LogDirInputs) -> LogDirMove | None:
    """What a rollback has to know of a replica that an earlier plan moved; None: others have moved it since, or nothing
    was moved.

    A copy in flight goes on: it is one of a run that was let go.
    """
    if move.origin is None:
        return None
    dirs = inputs.dirs.get(move.broker, ())
    at = next((d.path for d in dirs if move.tp in d.replica_bytes), None)
    future = next((d.path for d in dirs if move.tp in d.future_bytes), None)
    if at is not None and at not in {move.before, move.after}:
        return None
    if at is not None and future in {move.before, move.after}:
        return replace(move, before=at, after=future)
    return replace(move, before=at, after=at) if at != move.origin else None
