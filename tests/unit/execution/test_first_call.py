"""Whether the first call for a partition was carried out: only what that call makes of the partition counts."""

import pytest

from kafka_rebalance.execution.first_call import carried_out
from kafka_rebalance.model.topology import PartitionState, TopicPartition, replicas_of

FOUND = replicas_of(1, 2, 3)


def state(*replicas, adding=(), removing=()):
    listed = replicas_of(*replicas)
    changes = {"adding": replicas_of(*adding), "removing": replicas_of(*removing)}
    return PartitionState(TopicPartition("t", 0), "id", listed, frozenset(listed), listed[0], **changes)


@pytest.mark.parametrize(
    ("call", "seen", "expected"),
    [
        ((4, 1, 2, 3), state(1, 2, 3), False),
        ((4, 1, 2, 3), state(4, 1, 2, 3, adding=[4]), True),
        ((4, 1, 2, 3), state(4, 1, 2, 3), True),
        ((4, 1, 2, 3), state(5, 1, 2, 3, adding=[5]), None),
        ((4, 1, 2, 3), state(1, 2, 3, 4, adding=[4]), None),
        ((4, 1, 2, 3), state(3, 2, 1), None),
        ((4, 1, 2, 3), state(4, 2, 3), None),
        ((4, 1, 2), state(4, 1, 2, 3, adding=[4], removing=[3]), True),
        ((4, 1, 2), state(4, 1, 2, 3), True),
        ((2, 4, 1, 3), state(2, 1, 3), True),
        ((4, 2, 3), state(2, 3, 1), True),
        ((2, 1, 3), state(2, 1, 3), True),
        ((1, 2), state(1, 2), True),
        ((1, 2, 3), state(1, 2, 3), False),
    ],
    ids=[
        "nothing happened",
        "in flight",
        "complete",
        "another reassignment in flight",
        "the same replicas in another order in flight",
        "reordered by others",
        "further than the call leads",
        "in flight, one is dropped",
        "just begun or just ended",
        "cancelled, the order has changed",
        "cancelled, what was dropped is last",
        "reordered",
        "dropped",
        "an election",
    ],
)
def test_what_the_partition_shows(call, seen, expected):
    assert carried_out(FOUND, replicas_of(*call), seen) is expected
