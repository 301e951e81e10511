"""What others have moved between a run and the one that takes it over stays theirs."""

import json

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import BEFORE, FAST, SPEC, Renamed, arrived, renamed_half_way

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.model.topology import TopicPartition, replicas_of

THEIRS = [7, 2, 3]
GONE = {"configMapRef": {"name": "gone", "key": "k"}}


@pytest.fixture
async def half_moved():
    return await renamed_half_way(range(1, 8))


async def left_by(operator, then):
    """The lists after the end of ``new``."""
    kafka = operator.kafka
    if then == "undo":
        kafka.slow = set()
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        operator.order_another(UNDO_ANNOTATION, operator.engine.rebalances["u-new"].record.run.to_undo.plan_hash)
        await operator.until_true(lambda: operator.state_of() in {"Undone", "RolledBackPartially"})
    else:
        kafka.arrive()
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
    return kafka.lists("t")


@pytest.mark.parametrize("then", ["deletion", "undo"])
@pytest.mark.parametrize("when", ["before the deletion", "after the deletion", "after the end"])
@pytest.mark.parametrize("names", [True, False])
async def test_moved_before_the_plan_of_the_new_one(half_moved, names, when, then):
    """Its plan moves the partition on, so it goes back to where others have moved it."""
    operator, kafka = half_moved, half_moved.kafka
    theirs = arrived(kafka)[0]
    operator.apply_another(**SPEC, **({"takesOver": "r"} if names else {}))
    if when == "before the deletion":
        kafka.assign("t", theirs, *THEIRS)
    operator.delete()
    if when == "after the deletion":
        kafka.assign("t", theirs, *THEIRS)
    await operator.until_true(lambda: not operator.exists("r"))
    if when == "after the end":
        kafka.assign("t", theirs, *THEIRS)
    assert operator.ends == ["TakenOver"]
    kafka.slow = {4, 5, 6}
    kafka.arrive()
    await operator.until_true(lambda: operator.state_of() == "Rebalancing")
    assert await left_by(operator, then) == [THEIRS if n == theirs else held for n, held in enumerate(BEFORE)]


@pytest.mark.parametrize("then", ["deletion", "undo"])
async def test_not_selected_by_the_new_one(half_moved, then):
    """Its plan does not name the partition any more, and the other partitions go back to before the former run."""
    operator, kafka = half_moved, half_moved.kafka
    theirs, *_ = arrived(kafka)
    kafka.create("u", [[1, 2, 3]] * 2)
    operator.delete()
    operator.apply_another(**SPEC, takesOver="r", topics={"include": ["u"]})
    await operator.until_true(lambda: not operator.exists("r"))
    kafka.assign("t", theirs, *THEIRS)
    kafka.slow = {4, 5, 6}
    await operator.until_true(lambda: operator.state_of() == "Rebalancing")
    assert await left_by(operator, then) == [THEIRS if n == theirs else held for n, held in enumerate(BEFORE)]


async def moved_back_by_others(operator):
    """``r`` has ended, and ``new`` is not planned yet. Others move a partition back, which takes long."""
    kafka = operator.kafka
    theirs = arrived(kafka)[0]
    operator.apply_another(takesOver="r", strategy="Assignment", assignment=GONE, throttle=FAST)
    operator.delete()
    await operator.until_true(lambda: not operator.exists("r"))
    assert operator.ends == ["TakenOver"]
    assert not kafka.flying
    kafka.slow = {1, 2, 3}
    await kafka.alter_reassignments({TopicPartition("t", theirs): replicas_of(1, 2, 3)})
    kafka.slow = set()
    return f"t-{theirs}", len(kafka.altered)


@pytest.mark.parametrize("begins", [False, True])
async def test_in_flight_before_the_plan_of_the_new_one(half_moved, begins):
    """Nothing of ``r`` was in flight when it ended. Neither the new plan nor its deletion cancels what others move."""
    operator, kafka = half_moved, half_moved.kafka
    theirs, sent = await moved_back_by_others(operator)
    if begins:
        rows = [{"topic": "t", "partition": n, "replicas": [4, 5, 6]} for n in range(6)]
        operator.kube.user_config_maps["kafka", "gone"] = {"k": json.dumps({"version": 1, "partitions": rows})}
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert len(kafka.altered) > sent
    operator.delete_another()
    await operator.until_true(lambda: not operator.exists("new"))
    assert not [name for name, _ in kafka.altered[sent:] if name == theirs]
    assert kafka.flying == {theirs}
    kafka.arrive()
    assert begins or kafka.lists("t") == BEFORE


class TestTwoRuns:
    """``new`` takes over two runs of ``r``, one after the other, before it begins."""

    @staticmethod
    async def mid_run(operator, number, partitions=1):
        """Create ``r`` again under its name, and wait until it has moved the first partitions."""
        metadata = {"name": "r", "namespace": "kafka", "uid": f"u-{number}"}
        metadata["creationTimestamp"] = operator.clock.at.isoformat()
        brokers = {"include": [4, 5, 6] if number == 1 else [1, 2, 8]}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "throttle": FAST, "brokers": brokers}
        spec["execution"] = {"parallelPartitionCount": 1, "parallelReplicaCount": 3}
        operator._see(operator.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))
        wanted = {*brokers["include"]}
        await operator.until_true(lambda: all(set(held) == wanted for held in operator.kafka.lists("t")[:partitions]))

    async def taken_over(self, theirs, others=0):
        """Both have moved t-0; ``theirs``: the list that others have given this partition in between, if any."""
        kafka = KafkaInMemory(range(1, 9), t=BEFORE)
        operator = Renamed(kafka)
        operator.apply_another(takesOver="r", strategy="Assignment", assignment=GONE, throttle=FAST)
        for number in (1, 2):
            kafka.slow = set()
            await self.mid_run(operator, number, others + 1 if number == 1 else 1)
            kafka.slow = set(kafka.brokers)
            operator.delete()
            kafka.arrive()
            await operator.until_true(lambda: not operator.exists("r"))
            if number == 1 and theirs:
                kafka.assign("t", others, *theirs)
        taken = [run for run in await RunStore(operator.kube).list_all() if run.successor == "u-new"]
        assert [run.uid for run in taken] == ["u-1", "u-2"]
        return operator

    @pytest.mark.parametrize("begins", [False, True])
    @pytest.mark.parametrize("theirs", [None, THEIRS])
    async def test_others_between_them(self, theirs, begins):
        """The first origin of t-0 counts, unless others have moved it out of reach of the first run."""
        operator = await self.taken_over(theirs)
        if begins:
            row = {"topic": "t", "partition": 5, "replicas": [4, 5, 6]}
            operator.kube.user_config_maps["kafka", "gone"] = {"k": json.dumps({"version": 1, "partitions": [row]})}
            await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        assert await left_by(operator, "deletion") == [theirs or BEFORE[0], *BEFORE[1:]]

    async def test_others_between_them_where_the_second_has_sent_nothing(self):
        """Its plan was made from the list of the others: that does not make it one of the first run."""
        operator = await self.taken_over(THEIRS, others=1)
        assert operator.kafka.lists("t")[1] == THEIRS
        assert await left_by(operator, "deletion") == [BEFORE[0], THEIRS, *BEFORE[2:]]

    async def test_others_after_them(self):
        operator = await self.taken_over(None)
        operator.kafka.assign("t", 0, 7, 5, 3)
        assert await left_by(operator, "deletion") == [[7, 5, 3], *BEFORE[1:]]
