"""Estimates the memory that parts of an answer take once they are read.

Their text says little about it: a set of 77 brokers has 300 characters and takes 8 KiB. Pure.
"""

import sys
from collections.abc import Mapping

from kafka_rebalance.kafka.ports import ConfigValue, Reassignment
from kafka_rebalance.model.topology import PartitionState

MEMORY_FACTOR = 6
"""The memory of usual answers, divided by the length of their text."""
REPLICA_BYTES = 360
"""A replica with its size takes up to 145 bytes, however short the name of its topic is. The log dirs of large clusters
are read in two halves of the brokers, of which one counts."""
ERROR_BYTES = 450
"""An error of a topic or broker, without its text."""
_ROW_BYTES = 300
_NUMBER_BYTES = 28
"""An id above 256; smaller ones are shared."""
_IN_LIST_BYTES = _NUMBER_BYTES + 8
_ENTRY_BYTES = 150
"""An entry of a list of throttled replicas: the operator makes a set of them."""


def memory_of(value: object) -> int:
    """Bytes that a value of an answer by topic or partition takes, without texts; 0 if its text says enough."""
    if isinstance(value, PartitionState | Reassignment):
        in_lists = len(value.replicas) + len(value.adding) + len(value.removing)
        in_sync = value.isr if isinstance(value, PartitionState) else ()
        return _ROW_BYTES + _IN_LIST_BYTES * in_lists + sys.getsizeof(in_sync) + _NUMBER_BYTES * len(in_sync)
    if isinstance(value, Mapping):
        configs = (one for one in value.values() if isinstance(one, ConfigValue))
        return sum(_ENTRY_BYTES * (config.value or "").count(",") for config in configs)
    return 0
