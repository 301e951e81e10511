"""Whether a plan can fit on the disks at all. Pure.

Held against all the disks of a broker together, and against the end of the plan alone: what is refused here could not
be carried out in any order. On the way old and new copies coexist, and the order is found as it goes: ``schedule``
begins no copy for which the fullest log dir has no room, and what has left makes some.
"""

from collections import Counter
from collections.abc import Collection, Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.ports import LogDir
from kafka_rebalance.model.plan import Plan
from kafka_rebalance.model.topology import BrokerId, TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_bytes

_NAMED = 3


def refuse_overfull(
    plan: Plan, dirs: Mapping[BrokerId, Collection[LogDir]], copies: Collection[TopicPartition] = ()
) -> None:
    """Refused("InsufficientDisk") names the brokers to which more comes than leaves them and is free there.

    ``dirs``: of the brokers that answered; of others, and of log dirs without a free size, nothing is known.
    ``copies``: partitions in flight, of which a part lies on the new brokers' disks already.
    """
    growth: Counter[BrokerId] = Counter()
    for planned in plan.partitions:
        for broker in set(planned.target) - set(planned.current):
            there = _lies_on(dirs.get(broker, ()), planned.tp) if planned.tp in copies else 0
            growth[broker] += max(0, planned.size_bytes - there)
        for broker in set(planned.current) - set(planned.target):
            growth[broker] -= planned.size_bytes
    short = [
        f"broker {broker} would hold {format_bytes(growth[broker])} more, and has {format_bytes(free)} free"
        for broker, found in sorted(dirs.items())
        if (free := _free(found)) is not None and growth[broker] > free
    ]
    if short:
        more = f" and {len(short) - _NAMED} more" if len(short) > _NAMED else ""
        raise Refused(Reason.INSUFFICIENT_DISK, "; ".join(short[:_NAMED]) + more)


def _lies_on(dirs: Collection[LogDir], tp: TopicPartition) -> int:
    return max((d.replica_bytes.get(tp, 0) for d in dirs), default=0)


def _free(dirs: Collection[LogDir]) -> int | None:
    """Usable bytes on all log dirs of a broker together; dirs that share a disk count it more than once."""
    return sum(d.usable_bytes for d in dirs) if dirs and all(d.usable_bytes >= 0 for d in dirs) else None
