"""A run that gave way to another one on the same partitions, after a restart: what the other one copies stays."""

import pytest
from tests.fakes.configs_in_memory import Configs
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import Renamed

from kafka_rebalance.reconcile.decide.direction import at_rest

OLD, NEW, ALL = {1, 2, 3}, {4, 5, 6}, set(range(1, 7))
RATES = {"leaderRate": "10Mi", "followerRate": "10Mi"}
FIRST = {"throttle": RATES, "brokers": {"include": [4, 5, 6]}, "execution": {"parallelPartitionCount": 1}}
SECOND = {"throttle": RATES, "execution": {"parallelPartitionCount": 8, "maxUnhealthy": 100}}
CHANGES = {"a broker less": {"decommission": [4]}, "others": {"include": [2, 3, 5, 6]}}


def too_large(operator):
    operator.edit(**FIRST, rollback={"maxData": "1"})
    operator.delete()


def suspended(operator):
    operator.edit(**FIRST | {"execution": {"parallelPartitionCount": 1, "suspend": True}})


def suspended_and_deleted(operator):
    suspended(operator)
    operator.delete()


async def gives_way(holds, brokers):
    """``r`` is at rest half-way, and ``new`` copies some of the same partitions."""
    kafka = KafkaInMemory(ALL, t=[[1, 2, 3]] * 8)
    operator = Renamed(kafka)
    operator.apply(**FIRST)
    await operator.until_true(lambda: sum(set(held) == NEW for held in kafka.lists("t")) >= 5)
    holds(operator)
    await operator.until("RollbackTooLarge", "Suspended", "RollingBack")
    await operator.until_true(lambda: at_rest(operator.rebalance))
    operator.apply_in("other", "new", **SECOND, brokers=CHANGES[brokers])
    kafka.slow = ALL
    await operator.until_true(lambda: len(kafka.flying) >= 5)
    kafka.altered.clear()
    return operator


async def rounds(operator, count):
    for _ in range(count):
        await operator.round()
        assert not unthrottled(operator.kafka)


def unthrottled(kafka):
    """The copies in flight that are in no list of throttled replicas."""
    _, followers = Configs.lists(kafka, "t")
    copies = {f"{tp.partition}:{broker}" for tp, state in kafka.states.items() for broker in state.adding}
    return copies - set(followers or ())


def cancelled(operator):
    return [name for name, to in operator.kafka.altered if to is None]


@pytest.mark.parametrize("brokers", CHANGES)
@pytest.mark.parametrize("holds", [too_large, suspended, suspended_and_deleted])
class TestRunThatGaveWay:
    async def test_cancels_no_copy_of_the_later_run_after_a_restart(self, holds, brokers):
        """Without the places of the queue, it would take them for copies of its own."""
        operator = await gives_way(holds, brokers)
        operator.restart()
        await rounds(operator, 8)
        assert not cancelled(operator)
        assert len(operator.kafka.flying) >= 5

    async def test_the_later_run_goes_on(self, holds, brokers):
        """It keeps its copies, and ends."""
        operator = await gives_way(holds, brokers)
        operator.restart()
        await rounds(operator, 3)
        operator.kafka.arrive()
        await rounds(operator, 60)
        assert operator.state_of("new", "other") == "Succeeded"
        assert not cancelled(operator)


@pytest.mark.parametrize("brokers", CHANGES)
async def test_one_that_may_go_on_by_now(brokers):
    """It is older, so that it comes first after a restart, before the copies of the other one have ended."""
    operator = await gives_way(suspended, brokers)
    operator.edit(**FIRST)
    await rounds(operator, 2)
    operator.restart()
    await rounds(operator, 8)
    assert not cancelled(operator)
    operator.kafka.arrive()
    await operator.until("Succeeded")


@pytest.mark.parametrize("brokers", CHANGES)
@pytest.mark.parametrize("holds", [too_large, suspended_and_deleted])
async def test_replicas_above_the_replication_factor_are_left_to_the_later_run(holds, brokers):
    """Its copies have arrived while the operator was down: the other run would drop them."""
    operator = await gives_way(holds, brokers)
    copied = {tp: state.adding for tp, state in operator.kafka.states.items() if state.adding}
    operator.kafka.arrive()
    operator.restart()
    await rounds(operator, 8)
    for tp, adding in copied.items():
        assert set(adding) <= set(operator.kafka.states[tp].replicas)
