"""Whether a run started in this cluster, by the ids of its topics."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin, Run
from kafka_rebalance.model.topology import BrokerId, TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.started_runs import Started, may_move_here, started_here
from kafka_rebalance.reconcile.state.record import Stores


@pytest.fixture
async def started():
    """The stores, and a run that moves topics a and b."""
    kube = KubeInMemory()
    stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
    rows = [
        PlannedPartition(TopicPartition(topic, 0), replicas_of(1), replicas_of(2), f"{topic}-id-1") for topic in "ab"
    ]
    plan = Plan(tuple(rows), Certificate(2, optimal=True))
    await stores.plans.save("u", plan.hash, "c", plan, NOON)
    return stores, Run("u", "kafka", "r", "c", "run", "h", plan.hash, NOON)


@pytest.fixture
def kafka():
    return KafkaInMemory((1, 2), a=[[1]], b=[[1]])


class TestBegunHere:
    async def test_one_topic_is_there(self, started, kafka):
        """One match is enough, even if others cannot be read: they may have been deleted since."""
        kafka.hidden = {"b"}
        assert await started_here(*started, kafka) is Started.HERE

    async def test_none_is_there_with_its_id(self, started, kafka):
        """Another cluster has a topic of that name, or it was deleted and created again."""
        kafka.delete("b")
        kafka.create("a", [[1]], "id-2")
        assert await started_here(*started, kafka) is Started.ELSEWHERE

    @pytest.mark.parametrize("unreadable", ["hidden", "failing"])
    async def test_what_cannot_be_read_may_be_there(self, started, kafka, unreadable):
        """The answer is unknown: the caller waits."""
        kafka.delete("a")
        setattr(kafka, unreadable, {"b"})
        with pytest.raises(RebalanceError, match="b"):
            await started_here(*started, kafka)

    async def test_all_were_deleted(self, started, kafka):
        """Nothing is left to do for it, and no topic shows where it started."""
        kafka.delete("a")
        kafka.delete("b")
        assert await started_here(*started, kafka) is Started.UNKNOWN

    @pytest.fixture
    async def without_moves(self):
        """The stores, and a run whose present plan is empty: only its cordons are left."""
        kube = KubeInMemory()
        stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        plan = Plan((), Certificate(0, optimal=True))
        await stores.plans.save("u", plan.hash, "c", plan, NOON)
        return stores, Run("u", "kafka", "r", "c", "run", "h", plan.hash, NOON, cordoned=(BrokerId(1),))

    async def test_a_run_that_moves_nothing(self, without_moves, kafka):
        """No topic shows where it started."""
        assert await started_here(*without_moves, kafka) is Started.UNKNOWN

    @pytest.mark.parametrize(("topic_id", "here"), [("a-id-1", Started.HERE), ("a-id-2", Started.ELSEWHERE)])
    async def test_a_run_whose_earlier_plan_has_moved_something(self, without_moves, kafka, topic_id, here):
        """Its origins name the topics."""
        stores, run = without_moves
        tp = TopicPartition("a", 0)
        await stores.origins.append(run.uid, run.run_id, [Origin(tp, topic_id, replicas_of(1))])
        assert await started_here(stores, run, kafka) is here


async def test_a_run_that_another_owner_may_have_started_moves_nothing():
    """Plans neither wait for it nor read what it moves: a namespace may have hundreds, with large plans."""
    run = Run("u", "kafka", "r", "c", "run", "h", "sha256:a", NOON, unproved=True)
    assert not await may_move_here(run, None, None, None)
