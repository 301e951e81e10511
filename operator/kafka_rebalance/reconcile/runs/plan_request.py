"""Builds the planner's request from the selected partitions and their sizes, and has it planned."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter

from kafka_rebalance.api.planning_goals import planning_goals
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec, OfflinePolicy
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.partition_move import PartitionMove, changed_instead, drift
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.model.goals import LoadResource, Strategy
from kafka_rebalance.model.plan import Plan, PlannedPartition, SkippedPartition
from kafka_rebalance.model.run import Spent
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.planning.problem.goal_loads import with_loads
from kafka_rebalance.planning.problem.request import PartitionInput, PlanRequest, eligible_brokers
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.budget_used import what_is_left
from kafka_rebalance.reconcile.decide.superseding import as_if_cancelled
from kafka_rebalance.reconcile.runs.assignment_lists import AssignmentLists
from kafka_rebalance.reconcile.runs.known_loads import KnownLoads, PartitionSize
from kafka_rebalance.reconcile.runs.plan_memory import DraftMemory
from kafka_rebalance.reconcile.runs.solving import run_planner
from kafka_rebalance.reconcile.state.namespace_turns import InlineTurns
from kafka_rebalance.reconcile.state.round_thread import off_the_loop

_UNKNOWN_SIZE = PartitionSize(0, ())


@dataclass(frozen=True, slots=True)
class PlanInputs:
    """The inputs of a plan, in addition to the spec: the lists it refers to, and what topics demand of its replication
    factor.

    ``min_insync`` is the effective min.insync.replicas per topic; absent: 1. ``spent``: of the budget, by the same run.
    ``capacities``: of each broker and resource, where known. ``pinned``: the topics that stay. ``avoided``: brokers
    that other rebalances empty. ``former``: brokers that have held partitions of the run. Dead ones may be emptied also
    after the run has dropped their replicas.
    """

    lists: AssignmentLists = field(default_factory=AssignmentLists)
    min_insync: Mapping[str, int] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    capacities: Mapping[BrokerId, Mapping[LoadResource, int]] = field(default_factory=dict)
    pinned: Collection[str] = frozenset()
    avoided: Collection[BrokerId] = frozenset()
    former: Collection[BrokerId] = frozenset()


async def make_plan(
    spec: KafkaRebalanceSpec,
    info: ClusterInfo,
    selected: Mapping[TopicPartition, PartitionState],
    loads: KnownLoads,
    inputs: PlanInputs,
    turns: InlineTurns | None,
    memory: DraftMemory,
) -> Plan:
    """A plan for the selected partitions as they are.

    Refused names what the cluster cannot give, or with offlinePolicy Refuse the partitions without a leader.
    Transient("ClusterUnhealthy") if a broker that holds replicas is away and not to be emptied: it may be restarting.
    ``turns`` and ``memory``: as for `run_planner`.
    """
    # Both the request and what is added to the plan take seconds if there are many partitions.
    resting = await off_the_loop(_at_rest, selected)
    request = await off_the_loop(_request, spec, info, resting, selected, loads, inputs)
    made = await run_planner(request, turns, memory)
    return await off_the_loop(_completed, made, request, resting, selected, inputs)


def _at_rest(selected: Mapping[TopicPartition, PartitionState]) -> dict[TopicPartition, PartitionState]:
    """A list that others are changing right now has too many replicas to plan from."""
    return {tp: state for tp, state in selected.items() if not (state.adding or state.removing)}


@without_collector()
def _request(
    spec: KafkaRebalanceSpec,
    info: ClusterInfo,
    resting: Mapping[TopicPartition, PartitionState],
    selected: Mapping[TopicPartition, PartitionState],
    loads: KnownLoads,
    inputs: PlanInputs,
) -> PlanRequest:
    holders = frozenset[BrokerId]().union(*{state.replicas for state in resting.values()})
    live = tuple(sorted(info.brokers.values(), key=lambda broker: broker.id))
    include, decommission = _ids(spec.brokers.include), _ids(spec.brokers.decommission)
    targets = eligible_brokers(live, include, decommission, holders.union(inputs.former)).difference(inputs.avoided)
    if not targets:
        raise Refused(Reason.INSUFFICIENT_BROKERS, "other rebalances empty all brokers that may hold replicas")
    away = holders - set(info.brokers) - decommission
    if away and not include and spec.strategy is not Strategy.LOG_DIRS:
        raise _waits_for(away)
    if spec.offline_policy is OfflinePolicy.REFUSE:
        _refuse_offline(resting)
    goals = planning_goals(spec.goals)
    return PlanRequest(
        brokers=live,
        partitions=with_loads(_partition_inputs(resting, loads, inputs), goals.load, loads.model),
        targets=targets,
        goals=what_is_left(goals, inputs.spent),
        strategy=spec.strategy,
        replication_factor=spec.replication_factor,
        # Partitions in flight are left to the tool that moves them, also if the lists name them.
        assignment={tp: row for tp, row in inputs.lists.wanted.items() if tp in resting or tp not in selected},
        capacities=inputs.capacities,
        decommission=decommission,
    )


def _partition_inputs(
    resting: Mapping[TopicPartition, PartitionState],
    loads: KnownLoads,
    inputs: PlanInputs,
) -> tuple[PartitionInput, ...]:
    """The partitions with their sizes and pins, sorted; a size that is not known is 0."""
    found, sizes = list[PartitionInput](), loads.sizes
    for topic, tps in groupby(sorted(resting), key=attrgetter("topic")):
        pinned, min_insync = topic in inputs.pinned, inputs.min_insync.get(topic, 1)
        for tp in tps:
            state, (new_copy, replica_bytes) = resting[tp], sizes.get(tp, _UNKNOWN_SIZE)
            led = state.leader is not None
            row = (tp, state.replicas, state.topic_id, new_copy, led, pinned, min_insync, replica_bytes)
            found.append(PartitionInput(*row))
    return tuple(found)


def _waits_for(away: Collection[BrokerId]) -> Transient:
    """Why no plan is made while brokers that hold replicas are not live."""
    names = ", ".join(str(b) for b in sorted(away))
    names = f"broker {names} holds replicas and is" if len(away) == 1 else f"brokers {names} hold replicas and are"
    return Transient(
        Reason.CLUSTER_UNHEALTHY,
        f"{names} not live: the plan waits for the return. List brokers that are gone for good in "
        "spec.brokers.decommission",
        retry_after=15,
    )


def _completed(
    made: Plan,
    request: PlanRequest,
    resting: Mapping[TopicPartition, PartitionState],
    selected: Mapping[TopicPartition, PartitionState],
    inputs: PlanInputs,
) -> Plan:
    """The plan with the elections, and with what was left out of the request."""
    busy = [
        SkippedPartition(tp, Reason.WEDGED_REASSIGNMENT if selected[tp].wedged else Reason.FOREIGN_REASSIGNMENT)
        for tp in (sorted(selected.keys() - resting) if len(selected) > len(resting) else ())
    ]
    if request.strategy is Strategy.PREFERRED_LEADERS:
        made = replace(made, partitions=tuple(sorted((*made.partitions, *_elections(request, made, resting)))))
    staying = _left_on(request.decommission, request, made) if request.decommission else ()
    made = replace(made, skipped=(*made.skipped, *inputs.lists.skipped, *busy, *staying))
    wanted = inputs.lists.wanted
    in_place = tuple(sorted(wanted.keys() - made.about)) if wanted else ()
    return replace(made, in_place=in_place, reason=made.reason if selected else Reason.NOTHING_SELECTED)


def _elections(
    request: PlanRequest, made: Plan, states: Mapping[TopicPartition, PartitionState]
) -> Iterable[PlannedPartition]:
    """The partitions whose list stays, and which are led by another replica than the first one.

    A first replica on a broker that may hold nothing is not elected: it stands first where there is no other.
    """
    changed = {p.tp for p in made.partitions}
    for p in request.partitions:
        led_by, first = states[p.tp].leader, p.replicas[0]
        if led_by not in {None, first} and p.tp not in changed and not p.pinned and first in request.targets:
            yield PlannedPartition(p.tp, p.replicas, p.replicas, p.topic_id, p.size_bytes, elects=True)


def _left_on(leaving: frozenset[BrokerId], request: PlanRequest, made: Plan) -> Iterable[SkippedPartition]:
    """What the plan knowingly leaves on brokers to be emptied: planning again would leave it there, too."""
    known = {p.tp for p in made.partitions} | {row.tp for row in made.skipped}
    for p in request.partitions:
        if leaving.intersection(p.replicas) and p.tp not in known:
            reason = (
                Reason.PINNED if p.pinned else Reason.BUDGET_REACHED if made.imbalance is not None else Reason.NOT_MOVED
            )
            yield SkippedPartition(p.tp, reason)


def _refuse_offline(partitions: Mapping[TopicPartition, PartitionState]) -> None:
    offline = sorted(tp for tp, state in partitions.items() if state.leader is None)
    if offline:
        examples = ", ".join(str(tp) for tp in offline[:5])
        message = f"{len(offline)} partitions have no leader: {examples}; spec.offlinePolicy: Skip leaves them alone"
        raise Refused(Reason.OFFLINE_PARTITIONS, message)


def refuse_stale(
    earlier: Iterable[PartitionMove],
    partitions: Mapping[TopicPartition, PartitionState],
    known: Mapping[TopicPartition, PartitionState],
    left_alone: Collection[TopicPartition],
) -> None:
    """Transient("MetadataStale") while metadata still shows copies that a cancel has just taken back.

    A plan from such a list would not start from what the partition is. A topic that was deleted and created again has a
    new list, without copies of the earlier topic. ``left_alone``: partitions for which the rounds have found that
    nothing can be taken back, for example beside dead brokers: what both readings show is no old metadata. The same
    holds for what both show beside a copy or drop in flight that stays until the plan is known.
    """
    for move in earlier:
        state = partitions.get(move.tp)
        if state is None or state.topic_id != move.topic_id or not is_above(move, state):
            continue
        shown = known.get(move.tp)
        if shown is not None and shown.in_flight:
            agrees = not state.in_flight and as_if_cancelled(shown).replicas == state.replicas
        else:
            agrees = move.tp in left_alone and shown is not None and shown.replicas == state.replicas
        if not agrees:
            raise Transient(Reason.METADATA_STALE, f"{move.tp} still shows {list(state.replicas)}; reading again", 1.0)


def is_above(move: PartitionMove, state: PartitionState) -> bool:
    """Whether a step of the move has left the partition above its replication factor."""
    return len(state.replicas) > move.most and move.known.issuperset(state.replicas)


def refuse_outdated(
    selected: Iterable[TopicPartition],
    read: Mapping[TopicPartition, PartitionState],
    known: Mapping[TopicPartition, PartitionState],
) -> None:
    """Transient("MetadataStale") if ``known``, the reading of the rounds, shows one of these otherwise.

    For a plan that moves nothing: a run ends with it at once, and nothing shows that it was made from old metadata.
    """
    for tp in selected:
        one, other = read.get(tp), known.get(tp)
        if one is None or other is None or one is other or (one.replicas, one.leader) == (other.replicas, other.leader):
            continue
        message = f"{tp} shows {list(one.replicas)}, and something else just before; reading again"
        raise Transient(Reason.METADATA_STALE, message, 1.0)


def moved_by_others(
    sent: Collection[PartitionMove],
    partitions: Mapping[TopicPartition, PartitionState],
    known: Mapping[TopicPartition, PartitionState],
) -> frozenset[TopicPartition]:
    """The partitions that the run has moved and others have moved elsewhere since: they are not the run's any more.

    Transient("MetadataStale") while ``known``, the reading of the rounds, does not show the same. A broker may answer
    with metadata from before the run, and the origin of a partition would be lost by that.
    """
    theirs = _elsewhere(sent, partitions)
    if doubted := theirs - _elsewhere(sent, known):
        tp = min(doubted)
        message = f"{tp} shows {list(partitions[tp].replicas)}, and something else just before; reading again"
        raise Transient(Reason.METADATA_STALE, message, 1.0)
    return theirs


def without_those_of_others(
    sent: Collection[PartitionMove],
    partitions: Mapping[TopicPartition, PartitionState],
    known: Mapping[TopicPartition, PartitionState],
) -> tuple[PartitionMove, ...]:
    """The moves of partitions that others have not moved since; arguments and errors as of ``moved_by_others``."""
    theirs = moved_by_others(sent, partitions, known)
    return tuple(move for move in sent if move.tp not in theirs)


def _elsewhere(
    sent: Iterable[PartitionMove], partitions: Mapping[TopicPartition, PartitionState]
) -> frozenset[TopicPartition]:
    found = ((move, partitions.get(move.tp)) for move in sent)
    return frozenset(
        move.tp
        for move, state in found
        if state is not None and (changed_instead(move, state) or drift(move, as_if_cancelled(state).replicas))
    )


def still_copied(
    moves: Mapping[TopicPartition, PartitionMove],
    left: Collection[TopicPartition],
    partitions: Mapping[TopicPartition, PartitionState],
) -> dict[TopicPartition, PartitionState]:
    """The copies that are still in flight from runs that ended early and were taken over; ``left``: see Inheritance."""
    found = {tp: partitions[tp] for tp in left if tp in moves and tp in partitions and partitions[tp].in_flight}
    return {
        tp: state
        for tp, state in found.items()
        if moves[tp].known.issuperset(state.replicas) and not changed_instead(moves[tp], state)
    }


def with_earlier_moves(
    made: Plan,
    earlier: Iterable[PartitionMove],
    partitions: Mapping[TopicPartition, PartitionState],
    let_go: Mapping[TopicPartition, PartitionState],
) -> Plan:
    """The plan plus the partitions that an earlier plan of the same run touched and this one leaves where they are.

    A partition that others have moved keeps its list from before the run, so the run leaves it alone. A partition that
    others are moving now keeps the list that they found; its target is theirs. Copies of an earlier run that are still
    in flight, and replicas above the replication factor (``let_go``: the partitions with these) are given up: the plan
    leads from their list to that without them.
    """
    planned = {p.tp for p in made.partitions}
    drifted = {row.tp for row in made.skipped if row.reason == Reason.DRIFTED}
    left = []
    for e in earlier:
        if e.tp not in planned and e.tp in partitions:
            stays = e.origin if e.tp in drifted else as_if_cancelled(partitions[e.tp]).replicas
            flying = let_go.get(e.tp)
            current = tuple(b for b in flying.replicas if b not in flying.removing) if flying is not None else stays
            left.append(PlannedPartition(e.tp, current, stays, e.topic_id, e.size_bytes))
    return replace(made, partitions=tuple(sorted((*made.partitions, *left)))) if left else made


def from_lists_of(made: Plan, found: Mapping[TopicPartition, PartitionState]) -> Plan:
    """The plan from these lists, also in flight: the planner was told of fewer replicas.

    The replicas that it was not told of are dropped, and belong to what the run knows of the partition.
    """

    def as_found(p: PlannedPartition) -> PlannedPartition:
        return replace(p, current=found[p.tp].replicas, elects=False) if p.tp in found else p

    return replace(made, partitions=tuple(map(as_found, made.partitions)))


def _ids(ids: Iterable[int]) -> frozenset[BrokerId]:
    return frozenset(BrokerId(i) for i in ids)
