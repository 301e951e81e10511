"""Whether the disks have room for a plan, at its end and on the way. Pure.

Held against all the disks of a broker together: brokers choose the log dir of a copy. On the way old and new copies
coexist, so a plan is refused as well if no order is found in which each partition has room (`execution.disk_order`).
While the plan is carried out, ``schedule`` keeps to what such an order leaves free, and to the fullest log dir.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.disk_order import Shift, disk_order
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes

_NAMED = 3
LogDirs = Mapping[BrokerId, Collection[LogDir]]


def refuse_overfull(plan: Plan, dirs: LogDirs, copies: Collection[TopicPartition] = ()) -> None:
    """Refused("InsufficientDisk") names the brokers that have no room for what comes to them.

    ``dirs``: of the brokers that answered; of others, and of log dirs without a free size, nothing is known.
    ``copies``: partitions in flight, of which a part lies on the new brokers' disks already.
    """
    room = {broker: free for broker, found in dirs.items() if (free := _free(found)) is not None}
    shifts = list(_shifts(plan, dirs, copies))
    growth: Counter[BrokerId] = Counter()
    for shift in shifts:
        growth.update(shift.takes)
        growth.subtract(shift.frees)
    _refuse(
        f"broker {broker} would hold {format_bytes(growth[broker])} more, and has {format_bytes(free)} free"
        for broker, free in sorted(room.items())
        if growth[broker] > free
    )
    order = disk_order(shifts, room)
    lacking = {
        broker: [shift.takes[broker] for shift in order.stuck if shift.takes.get(broker, 0) > free]
        for broker, free in sorted(order.room.items())
    }
    _refuse(
        f"no order of the copies fits on the disks: broker {broker} has {format_bytes(order.room[broker])} free when "
        f"all that can move has moved, and the smallest of {len(sizes)} copies that wait for room takes "
        f"{format_bytes(min(sizes))}. Free disk space there, or move less at once (goals.maxDataToMove)"
        for broker, sizes in lacking.items()
        if sizes
    )


def _refuse(reasons: Iterator[str]) -> None:
    short = list(reasons)
    if short:
        more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
        raise Refused(Reason.INSUFFICIENT_DISK, "; ".join(short[:_NAMED]) + more)


def _shifts(plan: Plan, dirs: LogDirs, copies: Collection[TopicPartition]) -> Iterator[Shift]:
    for planned in plan.partitions:
        size = planned.size_bytes
        takes = {broker: size for broker in planned.target if broker not in planned.current}
        if planned.tp in copies:
            takes = {broker: max(0, size - _lies_on(dirs.get(broker, ()), planned.tp)) for broker in takes}
        yield Shift(planned.tp, takes, {broker: size for broker in planned.current if broker not in planned.target})


def _lies_on(dirs: Collection[LogDir], tp: TopicPartition) -> int:
    return max((d.replica_bytes.get(tp, 0) for d in dirs), default=0)


def _free(dirs: Collection[LogDir]) -> int | None:
    """Usable bytes on all log dirs of a broker together; dirs that share a disk count it more than once."""
    return sum(d.usable_bytes for d in dirs) if dirs and all(d.usable_bytes >= 0 for d in dirs) else None
