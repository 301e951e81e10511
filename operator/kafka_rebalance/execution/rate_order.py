"""In which order partitions move so that no broker exceeds a limit of a rate on the way. Pure.

The rates are those that the plan was made with. From its first call to its last one, a partition counts everywhere: its
bytes in on each broker that held it or will hold it, what its leader uses at the old and at the new leader. So nothing
depends on how far its steps are. What is copied does not count, because the throttle limits it; that includes what a
leader sends to a new replica until the old one is dropped.

The order of a plan is found once, by ``room_order``: in it each partition fits once those before it have moved. A
partition may begin only if it leaves free what all before it that have not begun will take. So these can always begin
in the end, whatever moves at the same time. A rollback uses the reverse order: it meets the same states, so it is
within the limits too.

Whether a partition has begun is seen from its list, so a restart changes nothing. A reading from before the last call
is no risk: what this call takes is still counted where its partition stands in the order.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.room_order import Shift, room_order
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.rate_room import RateKey, RateRoom
from kafka_rebalance.model.topology import BrokerId, PartitionState, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_rate

Use = Mapping[RateKey, int]
"""Bytes per second, of tight rates only."""

_NOTHING: Use = {}


@dataclass(frozen=True, slots=True)
class RatePath:
    """What a partition uses with its lists ``now`` and ``then``, and at most on the way between them."""

    tp: TopicPartition
    now: Replicas
    then: Replicas
    before: Use
    after: Use
    on_the_way: Use

    @property
    def takes(self) -> Use:
        """What it takes in addition while it moves forward."""
        return dict(_beyond(self.on_the_way, self.before))

    def used(self, status: PartitionStatus, state: PartitionState | None, direction: Direction) -> Use:
        """What it counts as present. Its first and its last list count only if no step is in progress."""
        if status.phase is MovePhase.DONE:
            return self.after if direction is Direction.FORWARD else self.before
        if state is None:
            return _NOTHING if status.phase is MovePhase.SKIPPED else self.on_the_way
        for replicas, other, use in ((self.now, self.then, self.before), (self.then, self.now, self.after)):
            elected = state.leader != other[0] or other[0] == replicas[0]
            if state.replicas == replicas and not state.in_flight and elected:
                return use
        return self.on_the_way


@dataclass(frozen=True)
class RateOrder:
    """``paths`` in an order that is within the limits; ``stuck``: those for which none was found.

    ``free``: as in ``RateRoom``; ``left``: what is free when all but ``stuck`` have moved.
    """

    paths: tuple[RatePath, ...] = ()
    stuck: tuple[RatePath, ...] = ()
    free: Use = field(default_factory=dict)
    left: Use = field(default_factory=dict)


def rate_order(plan: Plan) -> RateOrder | None:
    """The order of the moves of a plan; None: any order is within the limits."""
    if (room := plan.rate_room) is None:
        return None
    moves = [p for p in plan.partitions if p.tp in room.rates and p.current != p.target]
    paths = {p.tp: _path(room, p.tp, p.current, p.target) for p in moves}
    shifts = [Shift(path.tp, path.takes, dict(_beyond(path.on_the_way, path.after))) for path in paths.values()]
    found = room_order(shifts, room.free)
    left = {**room.free, **found.room}
    ordered = tuple(paths[shift.tp] for shift in found.all_moves)
    return RateOrder(ordered, tuple(paths[shift.tp] for shift in found.stuck), room.free, left)


def refuse_unordered(plan: Plan) -> None:
    """Refused("CapacityLimitExceeded") if no order of the moves is found that is within the limits at every moment."""
    order = rate_order(plan)
    if order is None or not order.stuck:
        return
    advice = "Raise capacityLimit in goals.load, add brokers, or move less at once (goals.maxReplicaMoves)"
    takes = ((key, more, path.tp) for path in order.stuck for key, more in path.takes.items())
    lacking = min((row for row in takes if row[1] > order.left[row[0]]), default=None)
    if lacking is None:
        # The search has a fixed effort.
        message = f"no order of {len(order.stuck)} of the moves was found that is within capacityLimit on the way"
        raise Refused(Reason.CAPACITY_LIMIT_EXCEEDED, f"{message}. {advice}")
    key, more, tp = lacking
    raise Refused(
        Reason.CAPACITY_LIMIT_EXCEEDED,
        f"no order of the moves is within capacityLimit on the way: of {key.resource}, broker {key.broker} has "
        f"{format_rate(order.left[key])} free when all that can move has moved, and {tp} would bring "
        f"{format_rate(more)}. {advice}",
    )


def held_back(
    order: RateOrder,
    statuses: Mapping[TopicPartition, PartitionStatus],
    partitions: Mapping[TopicPartition, PartitionState],
    direction: Direction,
    no_room: Collection[TopicPartition] = (),
) -> dict[TopicPartition, RateKey]:
    """The ready partitions that may not begin now, each with a rate that has no room for it.

    A rollback never stops because of that. If nothing goes on in it, the first one may begin: after an edit its run may
    go back to lists for which no order is known, and what it would begin with may have ``no_room`` on a disk, or in a
    list of throttled replicas, until another partition has moved. If the first one has no such room either, the next
    one may begin too, and so on, until one of them has it.
    """
    if direction is Direction.REVERT:
        return {}
    free = dict(order.free)
    rows = []
    for path in (*order.paths, *order.stuck):
        if (status := statuses.get(path.tp)) is None:
            continue
        used = path.used(status, partitions.get(path.tp), direction)
        for key in {*used, *path.before}:
            free[key] -= used.get(key, 0) - path.before.get(key, 0)
        rows.append((path, status, used))
    held = dict[TopicPartition, RateKey]()
    goes_on = False
    for path, status, used in rows if direction is Direction.FORWARD else reversed(rows):
        start = path.before if direction is Direction.FORWARD else path.after
        takes = dict(_beyond(path.on_the_way, start)) if used is start else {}
        lacking = next((key for key, more in takes.items() if more > free[key]), None)
        if status.phase is MovePhase.READY and lacking is not None:
            held[path.tp] = lacking
        begins = status.phase is MovePhase.READY and lacking is None and path.tp not in no_room
        goes_on |= begins or status.phase is MovePhase.IN_FLIGHT
        if status.phase is not MovePhase.SKIPPED:
            for key, more in takes.items():
                free[key] -= more
    if held and not goes_on and direction is Direction.ROLLBACK:
        for tp in list(held):
            del held[tp]
            if tp not in no_room:
                break
    return held


def _path(room: RateRoom, tp: TopicPartition, now: Replicas, then: Replicas) -> RatePath:
    rates, tight = room.rates[tp], room.free
    way = _use(rates, {*now, *then}, {now[0], then[0]}, tight)
    return RatePath(tp, now, then, _use(rates, now, now[:1], tight), _use(rates, then, then[:1], tight), way)


def _use(
    rates: Mapping[LoadResource, int], holders: Iterable[BrokerId], leaders: Iterable[BrokerId], tight: Use
) -> Use:
    found = {}
    for resource, rate in rates.items():
        for broker in holders if resource is LoadResource.BYTES_IN else leaders:
            if (key := RateKey(broker, resource)) in tight:
                found[key] = rate
    return found


def _beyond(more: Use, less: Use) -> Iterator[tuple[RateKey, int]]:
    return ((key, rate - less.get(key, 0)) for key, rate in more.items() if rate > less.get(key, 0))
