"""Which rates of brokers are tight in a plan. Worked out by hand."""

from kafka_rebalance.model.goals import LoadGoal, LoadResource
from kafka_rebalance.model.rate_room import RateKey, RateRoom
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning import Goals, PartitionInput, PlanRequest, plan

BYTES_IN, LEADER, OUT = LoadResource.BYTES_IN, LoadResource.LEADER_BYTES_IN, LoadResource.BYTES_OUT


def request(resource, capacity, *rows, limit=80):
    """Rows (replicas, rate): partition i, with 10 bytes per second written if only what is sent has a goal."""
    partitions = tuple(
        PartitionInput(TopicPartition("t", i), replicas_of(*held), size_bytes=1, loads=(float(rate),), written=10.0)
        for i, (held, rate) in enumerate(rows)
    )
    ids = sorted({b for held, _ in rows for b in held})
    return PlanRequest(
        tuple(Broker(BrokerId(b)) for b in ids),
        partitions,
        frozenset(map(BrokerId, ids)),
        Goals(load=(LoadGoal(resource, 10, limit),)),
        capacities={BrokerId(b): {resource: capacity} for b in ids},
    )


def changed(made):
    return {p.tp.partition: (p.current, p.target) for p in made.partitions}


class TestTight:
    def test_a_broker_above_its_limit(self):
        """900 of 800: 450 leave it and 100 come. Broker 2 has room for the 450 in any order."""
        made = plan(request(BYTES_IN, 1000, ((1,), 450), ((1,), 450), ((2,), 100), ((2,), 200)))
        (leaves,) = [n for n, (now, _) in changed(made).items() if now == (1,)]
        (comes,) = [n for n, (now, _) in changed(made).items() if now == (2,)]
        assert made.rate_room == RateRoom(
            {RateKey(BrokerId(1), BYTES_IN): 0},
            {TopicPartition("t", n): {BYTES_IN: {0: 450, 1: 450, 2: 100, 3: 200}[n]} for n in (leaves, comes)},
        )

    def test_where_all_fits_in_any_order(self):
        made = plan(request(BYTES_IN, 1400, ((1,), 450), ((1,), 450), ((2,), 100), ((2,), 200)))
        assert changed(made)
        assert made.rate_room is None

    def test_without_a_limit(self):
        made = plan(request(BYTES_IN, 1000, ((1,), 450), ((1,), 450), ((2,), 100), ((2,), 200), limit=None))
        assert changed(made)
        assert made.rate_room is None

    def test_only_the_change_of_leaders_counts_for_what_they_send(self):
        """Followers fetch 10 per second from the leader: 450 to consumers are 460."""
        lists = ((1, 2), 440), ((1, 2), 440), ((2, 1), 90), ((2, 1), 190)
        made = plan(request(OUT, 1000, *lists))
        assert made.replica_moves == 0
        room = made.rate_room
        assert room is None or {rate for of in room.rates.values() for rate in of.values()} <= {450, 100, 200}
