"""Kafka may execute a call some seconds after it failed without an answer. No run ends before that is over.

Recorded: the controller hangs, the call fails, and is executed when the controller continues
(`test_outage.py::TestControllerLost`).
"""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.log_dir_runs import A, B, C, jbod, only_log_dirs, places
from tests.unit.reconcile.renamed_resources import FAST, Renamed

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION
from kafka_rebalance.errors import Permanent, Transient
from kafka_rebalance.kafka.ports import CALL_SECONDS, AlterCode, LogDirCode
from kafka_rebalance.model.topology import BrokerId

LATE_SECONDS = CALL_SECONDS - 2


class Hanging(KafkaInMemory):
    """The first call with the list ``lost`` for a partition fails, and is executed ``LATE_SECONDS`` later."""

    lost, held = None, None

    async def alter_reassignments(self, orders):
        if self.lost in [None if to is None else list(to) for to in orders.values()]:
            self.lost, self.held = None, dict(orders)
            raise Transient("KafkaUnreachable", "no answer")
        return await super().alter_reassignments(orders)


@pytest.fixture(params=[False, True], ids=["", "killed"])
def without_answer(request):
    """A run that leads t-0 from broker 1 to 2, up to the call without an answer. Then the operator may be killed."""

    async def run_up_to(call):
        kafka = Hanging((1, 2), t=[[1]])
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2]), throttle={"unlimited": True})
        kafka.lost = call
        await operator.until_true(lambda: kafka.held is not None)
        if request.param:
            operator.restart()
        return operator

    return run_up_to


@pytest.fixture(params=["raised", "a defect", "in the answer"])
def no_answer(request):
    """How the client says that a call between log dirs got no answer."""

    async def altered(orders):
        if request.param == "raised":
            raise Transient("KafkaUnreachable", "no answer")
        if request.param == "a defect":
            raise ValueError("the answer cannot be read")
        return dict.fromkeys(orders, LogDirCode.UNKNOWN)

    return altered


async def executed_late(operator):
    for _ in range(int(LATE_SECONDS)):
        await operator.round()
    await KafkaInMemory.alter_reassignments(operator.kafka, operator.kafka.held)


async def test_a_success(without_answer):
    """The call is repeated, and the partition arrives. Then the first call adds broker 1 again."""
    operator = await without_answer([1, 2])
    await executed_late(operator)
    await operator.until("Succeeded")
    assert operator.kafka.lists("t") == [[2]]


async def test_a_deletion(without_answer):
    """The new replica is removed. Then the call that removes the original replica is executed."""
    operator = await without_answer([2])
    operator.delete()
    await executed_late(operator)
    await operator.until_true(lambda: not operator.engine.rebalances)
    assert operator.kafka.lists("t") == [[1]]


class TestBrokerThatHangs:
    """It has the call, and passes it on when it continues.

    Recorded (`test_failures.py::TestControllerLost`). Kafka lists it no more meanwhile. It holds no replica of the run.
    """

    @pytest.fixture
    async def begun(self):
        """A call that moves the leader to broker 2 is in broker 3."""
        kafka = Hanging((1, 2, 3), t=[[1]])
        operator = OperatorInMemory(kafka)
        operator.assign(("t", 0, [2]), throttle=FAST)
        kafka.lost = [2]
        await operator.until_true(lambda: kafka.held is not None)
        self.hung = kafka.brokers.pop(BrokerId(3))
        operator.delete()
        return operator

    @pytest.mark.parametrize("killed", [False, True])
    async def test_a_deletion_waits_for_it(self, begun, killed):
        """Also an operator that was started meanwhile, which has not seen it live."""
        if killed:
            begun.restart(on_record=[1, 2, 3])
        for _ in range(25):
            await begun.round()
        begun.kafka.brokers[self.hung.id] = self.hung
        await KafkaInMemory.alter_reassignments(begun.kafka, begun.kafka.held)
        await begun.until_true(lambda: not begun.engine.rebalances)
        assert begun.kafka.lists("t") == [[1]]

    @pytest.mark.parametrize("killed", [False, True])
    async def test_a_deletion_does_not_wait_for_a_dead_one(self, begun, killed):
        if killed:
            begun.restart(on_record=[1, 2, 3])
        await begun.until_true(lambda: not begun.engine.rebalances)
        assert begun.kafka.lists("t") == [[1]]


async def test_a_success_of_the_heir():
    """The run is let go before its call is executed. The resource that takes over leaves the partition where it is."""
    kafka = Hanging((1, 2), t=[[1]])
    kafka.lost = [1, 2]
    operator = Renamed(kafka)
    operator.assign(("t", 0, [2]), throttle=FAST)
    await operator.until_true(lambda: kafka.held is not None)
    operator.apply_another(throttle=FAST, brokers={"include": [1]}, replicationFactor=1, takesOver="r")
    operator.delete()
    await operator.round()
    operator.order(LET_GO_ANNOTATION, "true")
    await executed_late(operator)
    assert not operator.exists("r")
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    assert kafka.lists("t") == [[1]]


async def test_a_success_of_a_rebalance_with_a_higher_priority():
    """It goes first after the call: otherwise the call would move the partition once more after the success."""
    kafka = Hanging((1, 2, 3), t=[[1]])
    kafka.lost = [1, 2]
    operator = Renamed(kafka)
    operator.assign(("t", 0, [2]), throttle=FAST)
    await operator.until_true(lambda: kafka.held is not None)
    operator.edit(execution={"suspend": True})  # it does not repeat the call
    operator.restart()  # which partition the call was for is not known any more
    operator.apply_another(throttle=FAST, brokers={"include": [3]}, replicationFactor=1, priority=1)
    await executed_late(operator)
    await operator.until_true(lambda: operator.state_of() == "Succeeded")
    assert kafka.lists("t") == [[3]]


@pytest.mark.parametrize("killed", [False, True])
async def test_a_move_between_log_dirs(no_answer, killed, monkeypatch):
    """An edit leaves the replicas where they are. Then the call that moves them is executed."""
    kafka, held = jbod(), {}
    kafka.crawling = {1}
    operator = OperatorInMemory(kafka)
    only_log_dirs(operator)

    async def altered(orders):
        held.update(orders)
        return await no_answer(orders)

    with monkeypatch.context() as patched:
        patched.setattr(kafka, "alter_log_dirs", altered)
        await operator.until_true(lambda: bool(held))
    if killed:
        operator.restart()
    operator.edit(goals={"logDirs": {"band": "10%", "drain": [{"broker": 1, "path": path} for path in (B, C)]}})
    for _ in range(int(LATE_SECONDS)):
        await operator.round()
    await kafka.alter_log_dirs(held)
    await operator.until_closed()
    assert kafka.future == {}
    assert places(kafka) == [A] * 6


async def test_a_placement(no_answer, monkeypatch):
    """An edit leaves the new replicas in the first log dir of broker 2. Then they are placed in the others."""
    kafka, held = jbod(brokers=(1, 2)), {}
    operator = OperatorInMemory(kafka)
    alter_log_dirs = kafka.alter_log_dirs

    async def altered(orders):
        if any(broker == 1 for _, broker in orders):
            return await alter_log_dirs(orders)
        held.update(orders)
        return await no_answer(orders)

    operator.apply(goals={"logDirs": {}})
    with monkeypatch.context() as patched:
        patched.setattr(kafka, "alter_log_dirs", altered)
        await operator.until_true(lambda: bool(held))
    drained = [{"broker": broker, "path": path} for broker in kafka.dirs for path in (B, C)]
    operator.edit(goals={"logDirs": {"drain": drained}})
    for _ in range(int(LATE_SECONDS)):
        await operator.round()
    await kafka.alter_log_dirs(held)
    await operator.until_closed()
    assert kafka.bytes_in(2) == {A: 300, B: 0, C: 0}


class TestWithoutAResult:
    """Kafka may execute a call of which nothing is known, for whatever reason that is."""

    @pytest.fixture
    def operator(self):
        """It gives a partition another order, and elects its first replica."""
        operator = OperatorInMemory(KafkaInMemory((1, 2), t=[[1, 2]]))
        operator.assign(("t", 0, [2, 1]), throttle=FAST)
        return operator

    @staticmethod
    def waits(operator):
        return operator.clock.monotonic() - operator.rebalance.memory.unanswered_at < CALL_SECONDS

    async def test_and_the_election_after_it_is_not_permitted(self, operator):
        async def unknown(orders):
            return dict.fromkeys(orders, AlterCode.UNKNOWN)

        async def refused(_partitions):
            raise Permanent("KafkaAuthorizationFailed", "no ACL")

        operator.kafka.alter_reassignments, operator.kafka.elect_preferred = unknown, refused
        await operator.until("KafkaAuthorizationFailed")
        assert self.waits(operator)

    async def test_because_of_a_defect(self, operator):
        async def fails(_orders):
            raise ValueError("the answer cannot be read")

        operator.kafka.alter_reassignments = fails
        await operator.until("InternalError")
        assert self.waits(operator)
