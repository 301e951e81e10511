"""``rollback.maxData``, if it is not known for a while how much a rollback copies."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.renamed_resources import Renamed, a_tick

from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import Answers
from kafka_rebalance.model.topology import TopicPartition

SPEC = {"brokers": {"include": [4, 5, 6]}, "execution": {"parallelPartitionCount": 2}, "rollback": {"maxData": "5Ti"}}
OLD, NEW = {1, 2, 3}, {4, 5, 6}


class Unsized(KafkaInMemory):
    """As long as it is ``mute``, the broker with the partition of ``u`` does not describe its log dirs."""

    mute = False

    async def log_dirs(self, brokers):
        found = await super().log_dirs(brokers)
        if not self.mute:
            return found
        held = {broker for tp, state in self.states.items() if tp.topic == "u" for broker in state.replicas}
        error = Transient("KafkaUnreachable", "no answer")
        return Answers({b: found[b] for b in found if b not in held}, dict.fromkeys(held & {*brokers}, error))

    def to(self, brokers):
        """How many copies go there only."""
        return sum(bool(state.adding) and set(state.adding) <= brokers for state in self.states.values())


class Silent(KafkaInMemory):
    """No log dir may be described."""

    async def log_dirs(self, brokers):
        return Answers({}, dict.fromkeys(brokers, Transient("KafkaNotPermitted", "Describe on the cluster")))


async def started():
    """The partition of ``u``, which is empty, has arrived, and another one is in flight."""
    kafka = Unsized(range(1, 7), t=[[1, 2, 3]] * 5, u=[[1]])
    kafka.sizes[TopicPartition("u", 0)] = 0
    operator = OperatorInMemory(kafka)
    operator.apply(throttle={"unlimited": True}, **SPEC)
    kafka.slow = NEW
    while not set(kafka.lists("u")[0]) <= NEW:
        for _ in range(3):
            await operator.round()
        kafka.arrive()
        kafka.slow = NEW
    for _ in range(3):
        await operator.round()
    assert kafka.to(NEW)
    return operator


async def going_back():
    operator = await started()
    operator.kafka.slow = OLD
    operator.delete()
    await operator.until_true(lambda: operator.kafka.to(OLD) == 2 and not operator.kafka.to(NEW))
    await operator.round()
    assert set(operator.kafka.lists("u")[0]) <= NEW
    return operator


async def rounds(operator, count):
    """Returns what was sent."""
    operator.kafka.altered.clear()
    for _ in range(count):
        await operator.round()
    return operator.kafka.altered


async def gone(operator):
    """It goes on."""
    operator.kafka.slow = set()
    operator.kafka.arrive()
    await operator.until_true(lambda: not operator.kube.resources)
    assert all(set(held) == OLD for held in operator.kafka.lists("t"))


@pytest.mark.parametrize("missing", ["deleted", "not described"])
async def test_a_topic_is_missing_after_a_restart(missing):
    """It takes some readings to prove that it is deleted. The copies back in flight go on, and no other one begins."""
    operator = await going_back()
    if missing == "deleted":
        operator.kafka.delete("u")
        await rounds(operator, 8)
    else:
        operator.kafka.failing.add("u")
    operator.restart()
    assert await rounds(operator, 3) == []
    assert operator.kafka.to(OLD) == 2
    operator.kafka.failing.clear()
    await gone(operator)


@pytest.mark.parametrize("restart", [False, True])
async def test_a_size_is_not_reported_in_mid_rollback(restart):
    """The partition was empty when it was planned, so its size counts as unknown until a broker reports it."""
    operator = await going_back()
    operator.kafka.mute = True
    if restart:
        operator.restart()
    assert await rounds(operator, 40) == []
    assert operator.kafka.to(OLD) == 2
    assert "SizesUnknown (1 partitions, e.g. u-0)" in await operator.until("RollbackTooLarge")
    operator.kafka.mute = False
    await gone(operator)


async def test_it_is_not_reported_when_the_deletion_begins():
    """What is in flight is cancelled, and nothing is copied back."""
    operator = await started()
    operator.kafka.mute = True
    operator.restart()
    operator.delete()
    copies = sorted(operator.kafka.flying)
    sent = await rounds(operator, 15)
    assert sorted(sent) == [(copy, None) for copy in copies]
    await operator.until("RollbackTooLarge")
    assert not operator.kafka.flying
    operator.kafka.mute = False
    await gone(operator)


@pytest.mark.parametrize("wait", [Renamed.round, a_tick], ids=["planned at once", "planned in several rounds"])
async def test_others_go_on_when_it_is_at_rest(wait):
    """No broker ever reports a size. Those that want the same partitions have its place in the queue, and keep it."""
    kafka = Silent(range(1, 7), t=[[1, 2, 3], [2, 3, 1], [3, 1, 2], [1, 2, 3]])
    operator = Renamed(kafka)
    operator.apply(throttle={"unlimited": True}, **SPEC | {"execution": {"parallelPartitionCount": 1}})
    await operator.until_true(lambda: sum(set(held) == NEW for held in kafka.lists("t")) >= 3)
    operator.delete()
    await operator.until("RollbackTooLarge")
    for _ in range(30):
        await operator.round()
    operator.apply_in("other", "new", throttle={"unlimited": True}, brokers={"decommission": [4]})
    kafka.altered.clear()
    for _ in range(100):
        await wait(operator)
    assert operator.state_of("new", "other") == "Succeeded"
    assert len(kafka.altered) < 20
