"""Brokers that get much more because others of their rack leave."""

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
EVEN = [[1, 3], [3, 1], [2, 4], [4, 2]] * 3
GIB = 2**30


def crowded(racks, lists, stay, *, size=0, **more):
    request = PlanRequest(
        brokers=tuple(Broker(BrokerId(b), rack) for b, rack in racks.items()),
        partitions=tuple(
            PartitionInput(TopicPartition("t", n), replicas_of(*row), size_bytes=size) for n, row in enumerate(lists)
        ),
        targets=frozenset(BrokerId(b) for b in stay),
        **more,
    )
    return plan(request).crowded


def test_the_last_broker_of_a_rack():
    """It is named with its rack, its replicas and, where sizes are known, its data."""
    why = "it is the last broker of rack b, and takes over what the others there had"
    assert crowded(RACKS, EVEN, {1, 2, 3}) == (f"broker 3 ends with 12 replicas instead of 6: {why}",)
    assert crowded(RACKS, EVEN, {1, 2, 3}, size=GIB) == (
        f"broker 3 ends with 12 replicas instead of 6 and 12.0 GiB instead of 6.0 GiB: {why}",
    )


def test_few_brokers_of_a_rack():
    """Half of a rack leaves, and the other half takes everything."""
    racks = {**RACKS, 5: "b", 6: "b"}
    lists = [[1, b] for b in (3, 4, 5, 6)] * 3
    found = crowded(racks, lists, {1, 2, 3, 4})
    assert [sentence.partition(":")[0] for sentence in found] == [
        "broker 3 ends with 6 replicas instead of 3",
        "broker 4 ends with 6 replicas instead of 3",
    ]
    assert found[0].endswith(": rack b keeps 2 of 4 brokers, which take over what the others there had")


def test_nothing_to_say():
    """No broker leaves, racks are ignored, another rack takes the replicas, or a new broker of the rack does."""
    assert crowded(RACKS, EVEN, {1, 2, 3, 4}) == ()
    assert crowded(RACKS, EVEN, {1, 2, 3}, goals=Goals(rack_awareness=RackAwareness.DISABLED)) == ()
    assert crowded({1: "a", 2: "b", 3: "c", 4: "c"}, [[b] for b in (1, 2, 3, 4)] * 9, {1, 2, 3}) == ()
    assert crowded({**RACKS, 5: "b"}, EVEN, {1, 2, 3, 5}) == ()


def test_a_larger_replication_factor():
    """Then every broker gets more, in each rack."""
    racks, lists = {1: "a", 2: "b", 3: "c", 4: "c"}, [[1], [2], [3]] * 4
    assert crowded(racks, lists, {1, 2, 3}, replication_factor=3) == ()


def test_many():
    """The first ones, and how many more there are."""
    racks = {n: f"r{n % 20}" for n in range(40)}
    lists = [[n, (n + 1) % 20, (n + 2) % 20] for n in range(20)] + [
        [n, 20 + (n + 1) % 20, 20 + (n + 2) % 20] for n in range(20, 40)
    ]
    found = crowded(racks, lists, set(range(20)))
    assert len(found) == 6
    assert found[-1] == "15 more brokers end with much more, because others of their racks leave"
