"""Adds to a plan what moves between the log dirs of brokers, by their sizes as they are now. Pure."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kafka_rebalance.api.log_dir_goals import LogDirGoals
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.plan import LogDirMove, Plan, PlannedPartition, joined_log_dirs
from kafka_rebalance.model.topology import BrokerId, PartitionState, ReplicaKey, TopicPartition
from kafka_rebalance.planning.log_dirs import BrokerDirs, DirReplica
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.runs.log_dir_search import DirAnswer, DirQuestion

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


def log_dir_questions(made: Plan, spec: KafkaRebalanceSpec, inputs: LogDirInputs) -> list[DirQuestion]:
    """What is to be found out for the plan: of each broker whose log dirs are evened, if it has several.

    Refused names the field, the broker and the log dir. Transient("LogDirsUnknown") while a broker does not answer.
    """
    if (goals := spec.goals.log_dirs) is None:
        return []
    brokers = _brokers(spec, goals, inputs)
    drained = _drained(goals, brokers, inputs.dirs)
    movable = _movable(made, inputs)
    several = (broker for broker in sorted(brokers) if len(inputs.dirs[broker]) > 1)
    leaving, coming = _leaving(made), defaultdict[BrokerId, list[DirReplica]](list)
    for p in made.partitions:
        for broker in p.added:
            coming[broker].append(DirReplica(p.tp, p.size_bytes, None))
    return [
        DirQuestion(
            BrokerDirs(
                broker,
                {one.path: one.total_bytes if one.total_bytes > 0 else None for one in inputs.dirs[broker]},
                drained.get(broker, frozenset()),
                (*_held(inputs.dirs[broker], leaving[broker], movable), *coming[broker]),
            ),
            goals.band,
            {one.path: one.usable_bytes for one in inputs.dirs[broker] if one.usable_bytes >= 0},
        )
        for broker in several
    ]


def with_log_dirs(
    made: Plan, inputs: LogDirInputs, questions: Sequence[DirQuestion], answers: Sequence[DirAnswer]
) -> Plan:
    """The plan with its moves between log dirs, and those of earlier plans that a rollback has to know.

    Refused("InsufficientDisk") if a log dir has no room for what moves there.
    """
    if not questions and not inputs.earlier:
        return replace(made, log_dirs=())
    found: list[LogDirMove] = []
    leaving = _leaving(made)
    for question, answer in zip(questions, answers, strict=True):
        broker = question.dirs.broker
        found += _moves_of(broker, leaving[broker], inputs.dirs[broker], answer)
    kept = {key: row for key, e in inputs.earlier.items() if (row := _kept(e, leaving[key[1]], inputs)) is not None}
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


def dirs_of_others(inputs: LogDirInputs) -> dict[TopicPartition, set[BrokerId]]:
    """The brokers on which others have moved a replica between log dirs after an earlier plan did."""
    found = defaultdict[TopicPartition, set[BrokerId]](set)
    for (tp, broker), move in inputs.earlier.items():
        if move.excludes(_place(tp, inputs.dirs.get(broker, ()))):
            found[tp].add(broker)
    return dict(found)


def _place(tp: TopicPartition, dirs: Collection[LogDir]) -> str | None:
    return next((d.path for d in dirs if tp in d.replica_bytes), None)


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


def _held(
    dirs: Collection[LogDir], leaving: Collection[TopicPartition], movable: Collection[TopicPartition]
) -> Iterator[DirReplica]:
    """The replicas that a broker keeps."""
    future = {tp: log_dir.path for log_dir in dirs for tp in log_dir.future_bytes}
    for log_dir in dirs:
        for tp, size in log_dir.replica_bytes.items():
            if tp not in leaving:
                # Where another tool moves it to is where it counts, and that is left to that tool.
                yield DirReplica(tp, size, future.get(tp, log_dir.path), tp not in movable or tp in future)


def _moves_of(
    broker: BrokerId, leaving: Collection[TopicPartition], dirs: Collection[LogDir], answer: DirAnswer
) -> Iterator[LogDirMove]:
    """Of one broker: those that were found, and the replicas that leave it with the plan."""
    if answer.full:
        message = f"log dir {answer.full} of broker {broker} has no room for what spec.goals.logDirs moves there"
        raise Refused(Reason.INSUFFICIENT_DISK, f"{message}, in no order of the copies: free space there first")
    for log_dir in dirs:
        for tp, size in log_dir.replica_bytes.items():
            if tp in leaving:
                yield LogDirMove(tp, broker, log_dir.path, None, log_dir.path, size)
    for move in answer.moves:
        yield LogDirMove(move.tp, broker, move.before, move.after, move.before, move.size)


def _leaving(made: Plan) -> defaultdict[BrokerId, set[TopicPartition]]:
    """What leaves each broker with the plan."""
    found = defaultdict[BrokerId, set[TopicPartition]](set)
    for p in made.partitions:
        for broker in p.current:
            if broker not in p.target:
                found[broker].add(p.tp)
    return found


def _kept(move: LogDirMove, leaving: Collection[TopicPartition], inputs: LogDirInputs) -> LogDirMove | None:
    """What a rollback has to know of a replica that an earlier plan moved; None: others have moved it since, or nothing
    was moved.

    A copy in flight goes on: it is one of a run that was let go. ``leaving``: what leaves the broker with the new plan.
    """
    if move.origin is None:
        return None
    dirs = inputs.dirs.get(move.broker, ())
    at = _place(move.tp, dirs)
    future = next((d.path for d in dirs if move.tp in d.future_bytes), None)
    if at is not None and at not in {move.before, move.after}:
        return None
    if at is not None and future in {move.before, move.after}:
        return replace(move, before=at, after=future)
    if at is not None and move.tp in leaving:
        return replace(move, before=at, after=None)
    return replace(move, before=at, after=at) if at != move.origin else None
