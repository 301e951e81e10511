"""Where a rebalance stands whose partitions are to go back to where they were: half way there, and on the way back."""

from collections.abc import Mapping

from e2e.bench.judge import Key, PartitionState
from e2e.bench.waiting import wait_until
from e2e.world import World


def wait_half_way(world: World, topic: str, before: Mapping[Key, PartitionState]) -> None:
    """Wait until a partition has moved while another is in flight."""
    wait_until("half way", lambda: world.moved(topic, before) and world.in_flight(topic), timeout=90, every=0.3)


def goes_back(world: World, topic: str, before: Mapping[Key, PartitionState]) -> bool:
    """Whether a copy is under way to a broker that held the partition before."""
    return any(set(adding) & set(before[key].replicas) for key, adding in world.in_flight(topic).items())
