"""Limits of the cluster that the servers of an inline connection may claim.

A larger cluster would take time and memory that the operator needs for all other clusters. ``frames.LONGEST_ANSWER``
limits the number of partitions.
"""

from collections.abc import Mapping

from kafka_rebalance.errors import Refused
from kafka_rebalance.kafka.ports import ClusterInfo, LogDir, Reassignment
from kafka_rebalance.model.topology import PartitionState
from kafka_rebalance.reasons import Reason

_MOST_BROKERS = 1_500
_LONGEST_LIST = 100
"""Replicas of one partition, or those in sync. The time for judging a partition grows with their square: 8 ms for
1,000."""

_MOST_LOG_DIRS = 100
"""Of one broker. An empty one has 19 bytes in an answer, and takes 240 bytes of memory."""


def check_size(answer: object) -> None:
    """Raises Refused("InlineConnectionRefused") if an answer of `KafkaAdmin` exceeds these limits.

    The process of the client checks its answer, so that the user gets this error. The operator checks the answer again,
    because a server may have taken over that process.
    """
    if isinstance(answer, ClusterInfo):
        if len(answer.brokers) > _MOST_BROKERS:
            raise _refused(f"claim {len(answer.brokers)} brokers", f"{_MOST_BROKERS}")
    elif isinstance(answer, Mapping):
        for of, value in answer.items():
            if isinstance(value, PartitionState | Reassignment):
                longest = max(len(value.replicas), len(value.adding), len(value.removing))
                longest = max(longest, len(value.isr) if isinstance(value, PartitionState) else 0)
                if longest > _LONGEST_LIST:
                    raise _refused(f"claim {longest} replicas of partition {of}", f"{_LONGEST_LIST}")
            elif isinstance(value, tuple) and len(value) > _MOST_LOG_DIRS and isinstance(value[0], LogDir):
                raise _refused(f"claim {len(value)} log dirs of broker {of}", f"{_MOST_LOG_DIRS}")


def _refused(what: str, most: str) -> Refused:
    message = f"the servers {what}; with an inline connection, the limit is {most}: use a KafkaConnection"
    return Refused(Reason.INLINE_CONNECTION_REFUSED, message)
