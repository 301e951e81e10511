"""Progress of a rebalance that is to be rolled back: half way, and on the way back."""

from collections.abc import Mapping

from e2e.bench.judge import Key, PartitionState
from e2e.bench.waiting import wait_until
from e2e.world import World

OFF_BROKER_1 = {"include": [2, 3, 4, 5]}
"""Every partition of a skewed topic has to leave a broker; if there is a choice, only the small ones are moved."""


def wait_half_way(world: World, topic: str, before: Mapping[Key, PartitionState]) -> None:
    """Wait until one partition has moved while another one is in flight."""
    wait_until("half way", lambda: world.moved(topic, before) and world.in_flight(topic), every=0.3)


def goes_back(world: World, topic: str, before: Mapping[Key, PartitionState]) -> bool:
    """Whether a copy to an original broker of the partition is in flight."""
    return any(set(adding) & set(before[key].replicas) for key, adding in world.in_flight(topic).items())
