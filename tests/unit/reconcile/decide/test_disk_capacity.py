"""A plan whose result cannot fit on the disks is refused before anything changes."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.decide.disk_capacity import refuse_overfull


def plan(*rows):
    planned = (
        PlannedPartition(TopicPartition("t", n), replicas_of(*now), replicas_of(*then), "id", size)
        for n, (now, then, size) in enumerate(rows)
    )
    return Plan(tuple(planned), Certificate(0, optimal=True))


def dirs(**free):
    """By broker (b1=...): the free bytes of each of its log dirs."""
    told = {BrokerId(int(name[1:])): free for name, free in free.items()}
    return {b: tuple(LogDir(f"/{at}", usable_bytes=n) for at, n in enumerate(usable)) for b, usable in told.items()}


class TestRule:
    def test_as_much_as_is_free(self):
        """To the byte; all log dirs of a broker together, because Kafka distributes new replicas."""
        refuse_overfull(plan(([1], [2], 60), ([1], [2], 40)), dirs(b2=[70, 30]))

    def test_a_byte_more(self):
        """The message names the broker and the figures."""
        with pytest.raises(Refused, match="broker 2 would hold 101 B more, and has 100 B free") as refused:
            refuse_overfull(plan(([1], [2], 60), ([1], [2], 41)), dirs(b1=[0], b2=[70, 30]))
        assert refused.value.reason == "InsufficientDisk"

    def test_what_leaves_makes_room(self):
        """In an order in which each copy fits; partitions that only change their leader need none."""
        refuse_overfull(plan(([1], [2], 60), ([2], [1], 60), ([1, 2], [2, 1], 500)), dirs(b1=[60], b2=[0]))

    def test_no_order(self):
        """Either copy would have to be complete before the other old replica is deleted."""
        with pytest.raises(Refused, match=r"no order .* broker 1 has 59 B free .* smallest of 1 copies .* takes 60 B"):
            refuse_overfull(plan(([1], [2], 60), ([2], [1], 60)), dirs(b1=[59], b2=[0]))

    def test_a_part_of_the_copy_is_there(self):
        """A copy in flight needs room only for its missing bytes."""
        part = {TopicPartition("t", 0): 35}
        told = {BrokerId(2): [LogDir("/a", part, usable_bytes=25)]}
        refuse_overfull(plan(([1], [2], 60)), told, copies=part.keys())
        with pytest.raises(Refused):
            refuse_overfull(plan(([1], [2], 60)), told)

    def test_a_limit(self):
        """A percentage of the disks. A broker above it that gets nothing is no reason to refuse."""
        told = {BrokerId(b): [LogDir("/a", total_bytes=1000, usable_bytes=free)] for b, free in ((1, 150), (2, 300))}
        refuse_overfull(plan(([1], [2], 100)), told, limit=80)
        with pytest.raises(Refused, match="broker 2 would hold 101 B more, and has 100 B free below 80% of its disks"):
            refuse_overfull(plan(([1], [2], 101)), told, limit=80)
        with pytest.raises(Refused, match="broker 1 would hold 1 B more, and has -50 B free below 80%"):
            refuse_overfull(plan(([2], [1], 1)), told, limit=80)
        with pytest.raises(
            Refused,
            match=r"no order .* broker 1 has -50 B free below 80% of its disks \(capacityLimit in goals.load\) when",
        ):
            refuse_overfull(plan(([2], [1], 200), ([1], [2], 200)), told, limit=80)

    def test_brokers_that_do_not_tell(self):
        """Their capacity is unknown; -1 means that the broker does not report the field."""
        refuse_overfull(plan(([1], [2], 60), ([1], [3], 60)), dirs(b2=[10, -1]))


class TestOperator:
    @pytest.fixture
    def kafka(self):
        kafka = KafkaInMemory([1, 2, 3], size=100, t=[[1], [1], [1], [1], [2], [2]])
        kafka.free, kafka.total = 199, -1

        async def log_dirs(brokers):
            held = {b: {tp: 100 for tp, state in kafka.states.items() if b in state.replicas} for b in brokers}
            return Answers({b: (LogDir("/data", sizes, {}, kafka.total, kafka.free),) for b, sizes in held.items()})

        kafka.log_dirs = log_dirs
        return kafka

    async def test_nothing_is_changed(self, kafka):
        """When there is enough space, the rebalance is planned again and carried out."""
        operator = OperatorInMemory(kafka)
        operator.apply()
        assert "broker 3" in await operator.until("InsufficientDisk")
        assert (kafka.altered, operator.run) == ([], None)
        kafka.free = 200
        await operator.until("Succeeded")
        assert kafka.lists("t").count([3]) == 2

    async def test_a_copy_that_was_faster_than_the_next_reading(self, kafka):
        """Disks are read every half minute, and every two seconds during a copy: what came since is not free."""
        room = {1: 0, 2: 0, 3: 250}

        async def log_dirs(brokers):
            held = {b: {tp: 100 for tp, state in kafka.states.items() if b in state.replicas} for b in brokers}
            free = {b: max(0, room[b] - 100 * len(held[b])) for b in brokers}
            return Answers({b: (LogDir("/data", held[b], usable_bytes=free[b]),) for b in brokers})

        kafka.log_dirs = log_dirs
        operator = OperatorInMemory(kafka)
        operator.apply(execution={"parallelPartitionCount": 1})
        await operator.until_true(lambda: operator.rebalance.memory.planning is not None)
        room[3] = 150
        await operator.until("Rebalancing")
        await operator.until_true(lambda: "DiskFull" in operator.message)
        for _ in range(5):
            await operator.round()
        assert sum(3 in row for row in kafka.lists("t")) == 1
        room[3] = 200
        await operator.until("Succeeded")

    async def test_the_limit_of_the_load_goal(self, kafka):
        """It holds for the plan and on the way; a rollback may use all the room that there is."""
        kafka.total, kafka.free = 1000, 399
        operator = OperatorInMemory(kafka)
        operator.apply(goals={"load": {"resources": [{"name": "Disk"}]}}, execution={"parallelPartitionCount": 1})
        assert "free below 80% of its disks" in await operator.until("InsufficientDisk")
        kafka.free, kafka.slow = 400, {3}
        await operator.until_true(lambda: kafka.flying)
        kafka.free = 299
        for _ in range(5):
            await operator.round()
        kafka.arrive()
        for _ in range(40):
            await operator.round()
        assert (kafka.lists("t").count([3]), "DiskFull" in operator.message) == (1, True)
        operator.delete()
        await operator.until_true(lambda: [3] not in kafka.lists("t"))

    async def test_a_broker_above_the_limit_is_relieved(self, kafka):
        """It starts at 95%: what leaves it makes the room for what it gets in exchange."""
        sizes = {TopicPartition("t", n): 300 if n < 3 else 10 for n in range(9)}
        rows = [[1], [1], [1], [2], [2], [2], [3], [3], [3]]
        kafka = KafkaInMemory([1, 2, 3], size=0, t=rows)

        async def log_dirs(brokers):
            held = {b: {tp: size for tp, size in sizes.items() if b in kafka.states[tp].replicas} for b in brokers}
            return Answers({b: (LogDir("/data", of, {}, 950, 950 - sum(of.values())),) for b, of in held.items()})

        kafka.log_dirs = log_dirs
        operator = OperatorInMemory(kafka)
        operator.apply(goals={"load": {"resources": [{"name": "Disk"}]}}, execution={"parallelPartitionCount": 1})
        await operator.until("Succeeded")
        assert sorted(b for n in range(3) for b in kafka.lists("t")[n]) == [1, 2, 3]
        assert [kafka.lists("t").count([b]) for b in (1, 2, 3)] == [3, 3, 3]

    async def test_nobody_may_tell(self, kafka):
        """Then a full disk is detected during execution."""
        tell, asked = kafka.log_dirs, []

        async def log_dirs(brokers):
            asked.append(brokers)
            if len(asked) == 2:
                raise Permanent("KafkaAuthorizationFailed", "no")
            return await tell(brokers)

        kafka.log_dirs = log_dirs
        operator = OperatorInMemory(kafka)
        operator.apply()
        await operator.until_true(lambda: operator.rebalance.record.loaded_run is not None)
