"""What a run only drops on its way forward is copied on its way back, under the same throttle."""

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION

MIB = 2**20
RATE = {"leaderRate": "1Mi", "followerRate": "1Mi"}


def under_throttle(kafka, tp):
    """Whether each copy in flight of this partition is listed, with a rate on its broker."""
    topic, _, number = tp.rpartition("-")
    followers = kafka.lists_of_throttled(topic)[1] or set()
    state = next(state for tp_, state in kafka.states.items() if str(tp_) == tp)
    return all(f"{number}:{b}" in followers and kafka.rates(b)[1] == str(MIB) for b in state.adding)


class Kafka(KafkaInMemory):
    lists_of_throttled = KafkaInMemory.__mro__[1].lists


async def shrunk(shorter=all, **spec):
    """Both partitions, or ``any`` of them, have one replica left of three."""
    operator = OperatorInMemory(Kafka([1, 2, 3], t=[[1, 2, 3], [2, 3, 1]]))
    operator.apply(replicationFactor=1, throttle=RATE, **spec)
    await operator.until_true(lambda: shorter(len(row) == 1 for row in operator.kafka.lists("t")))
    operator.kafka.slow = {1, 2, 3}
    return operator


class TestWayBack:
    async def test_an_undo_of_a_smaller_replication_factor(self):
        """The copies of the way back start when they are listed and their brokers have a rate."""
        operator = await shrunk()
        await operator.until("Succeeded")
        operator.order(UNDO_ANNOTATION, operator.status["plan"]["hash"])
        await operator.until_true(lambda: bool(operator.kafka.flying))
        assert all(under_throttle(operator.kafka, tp) for tp in operator.kafka.flying)

    async def test_a_plan_that_wants_back_what_the_run_has_dropped(self):
        """The spec is edited back before the run has ended."""
        operator = await shrunk(any, execution={"parallelPartitionCount": 1})
        assert operator.run.open
        operator.edit(replicationFactor=3)
        await operator.until_true(lambda: bool(operator.kafka.flying))
        assert all(under_throttle(operator.kafka, tp) for tp in operator.kafka.flying)
