"""Whether the disks have room for a plan, at its end and on the way. Pure.

The plan is compared with all the disks of a broker together, because brokers choose the log dir of a copy. On the way
old and new copies coexist, so a plan is refused as well if no order is found in which each partition has room
(`execution.room_order`). While the plan is carried out, ``schedule`` keeps to what such an order leaves free, and to
the fullest log dir.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.room_order import Shift, room_order
from kafka_rebalance.kafka.ports import LogDir, disk_space
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes

_NAMED = 3
LogDirs = Mapping[BrokerId, Collection[LogDir]]


def refuse_overfull(
    plan: Plan, dirs: LogDirs, copies: Collection[TopicPartition] = (), limit: int | None = None
) -> None:
    """Refused("InsufficientDisk") names the brokers that have no room for what comes to them.

    ``dirs``: the log dirs of the brokers that answered; nothing is known of other brokers, and of log dirs without a
    free size. ``copies``: partitions in flight, which are partly on the new brokers' disks already. ``limit``: the
    percentage of its disks that no broker exceeds; a broker that does already only has to get nothing more.
    """
    room = {b: space.below(limit) for b, found in dirs.items() if (space := disk_space(found)) is not None}
    if all(comes <= room[broker] for broker, comes in plan.bytes_copied[0].items() if broker in room):
        return  # enough room in any order of the steps: the quick answer for most plans
    within = f" below {limit}% of its disks (capacityLimit in goals.load)" if limit is not None else ""
    shifts = list(_shifts(plan, dirs, copies))
    growth: Counter[BrokerId] = Counter()
    for shift in shifts:
        growth.update(shift.takes)
        growth.subtract(shift.frees)
    _refuse(
        f"broker {broker} would hold {format_bytes(growth[broker])} more, and has {format_bytes(free)} free{within}"
        for broker, free in sorted(room.items())
        if growth[broker] > max(free, 0)
    )
    order = room_order(shifts, room)
    lacking = {
        broker: [shift.takes[broker] for shift in order.stuck if broker in shift.takes and shift.takes[broker] > free]
        for broker, free in sorted(order.room.items())
    }
    _refuse(
        f"no order of the copies fits on the disks: broker {broker} has {format_bytes(order.room[broker])} free"
        f"{within} when all that can move has moved, and the smallest of {len(sizes)} copies that wait for room takes "
        f"{format_bytes(min(sizes))}. Free disk space there, or move less at once (goals.maxDataToMove)"
        for broker, sizes in lacking.items()
        if sizes
    )


def _refuse(reasons: Iterator[str]) -> None:
    short = list(reasons)
    if short:
        more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
        raise Refused(Reason.INSUFFICIENT_DISK, "; ".join(short[:_NAMED]) + more)


def _shifts(plan: Plan, dirs: LogDirs, copies: Collection[TopicPartition]) -> Iterator[Shift[BrokerId]]:
    for planned in plan.partitions:
        size = planned.size_bytes
        takes = {broker: size for broker in planned.target if broker not in planned.current}
        if planned.tp in copies:
            takes = {broker: max(0, size - _lies_on(dirs.get(broker, ()), planned.tp)) for broker in takes}
        yield Shift(planned.tp, takes, {broker: size for broker in planned.current if broker not in planned.target})


def _lies_on(dirs: Collection[LogDir], tp: TopicPartition) -> int:
    return max((d.replica_bytes.get(tp, 0) for d in dirs), default=0)
