"""No run starts before the throttle ledger is stored: a run without one shows that somebody has deleted it."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.test_engine_cordons import Brokers

from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST
from kafka_rebalance.kube.api_errors import Forbidden

THEIRS = {("orders", FOLLOWER_LIST): "0:3"}
"""Others throttle a topic of the cluster."""


class Operator(OperatorInMemory):
    """While the ledger is ``refused``, as by a quota or a webhook, the other records are written."""

    def __init__(self, kafka=KafkaInMemory):
        super().__init__(kafka([1, 2, 3, 4], orders=[[1, 2, 3]] * 4))
        self.kafka.values |= THEIRS
        self.refused, self.saved = False, self.records.save
        self.records.save = self.save

    async def save(self, cluster_id, ledger):
        if self.refused:
            raise Forbidden("configmaps is forbidden: exceeded quota")
        await self.saved(cluster_id, ledger)

    def drain(self, **spec):
        self.apply(brokers={"decommission": [1]}, throttle={"leaderRate": "1Mi", "followerRate": "1Mi"}, **spec)

    @property
    def plans_stored(self):
        return len([name for name in self.kube.config_maps if name.startswith("plan-")])

    async def rounds(self, count=40):
        for _ in range(count):
            await self.round()


@pytest.mark.parametrize("restarted", [False, True])
async def test_the_first_one_is_refused(restarted):
    """The state says so, and the run begins when the refusal ends."""
    op = Operator()
    op.refused = True
    op.drain()
    await op.rounds()
    assert op.run is None
    assert op.plans_stored == 0
    assert op.state == "ApiServerForbidden"
    assert op.message == "no run starts without the throttle ledger: configmaps is forbidden: exceeded quota"
    op.refused = False
    if restarted:
        op.restart()
    await op.until("Succeeded")
    assert op.kafka.values == THEIRS


async def test_refused_when_the_plan_is_finished():
    """It was wanted for the first time in the round that began to plan."""
    op = Operator()
    op.drain()
    load, op.engine._rounds.throttle.load = op.engine._rounds.throttle.load, _nothing
    await op.round()
    op.engine._rounds.throttle.load, op.refused = load, True
    await op.rounds()
    assert op.run is None
    assert op.state == "ApiServerForbidden"
    op.refused = False
    await op.until("Succeeded")


async def _nothing(_rebalances, _info):
    pass


async def approved_without_a_ledger(op):
    """The run waited for an approval. Meanwhile the ledger was deleted, and may not be stored again."""
    op.drain(approval={"policy": "Manual"})
    await op.until("AwaitingApproval")
    op.records.kept, op.refused = None, True
    op.restart()
    op.edit(approval={"policy": "Automatic"})
    await op.rounds()
    assert op.state == "ApiServerForbidden"


async def test_deleted_and_refused_before_the_first_step():
    """The run waited for an approval. It starts when the ledger is stored again."""
    op = Operator()
    await approved_without_a_ledger(op)
    assert op.run.started_at is None
    assert op.kafka.altered == []
    op.refused = False
    op.restart()
    await op.until("Succeeded")
    assert op.kafka.values == THEIRS


async def test_no_broker_is_cordoned_before_the_run_may_start():
    """The run was approved while the ledger could not be stored. The cordon follows when it is."""
    op = Operator(Brokers)
    await approved_without_a_ledger(op)
    assert (op.kafka.cordoned, op.run.cordoned) == ([], ())
    op.refused, op.kafka.slow = False, {4}
    op.restart()
    await op.until_true(lambda: op.kafka.cordoned)
    assert op.run.cordoned == (1,)


async def test_deleted_during_a_run():
    """What is set may be ours: nothing is copied, and the status says what to do."""
    op = Operator()
    op.kafka.slow = {4}
    op.drain(execution={"parallelPartitionCount": 1})
    await op.until_true(lambda: op.kafka.flying)
    op.records.kept = None
    op.restart()
    op.kafka.arrive()
    await op.rounds()
    assert op.state == "ThrottleLedgerMissing"
    assert op.message.startswith("somebody deleted the throttle ledger")
    assert op.kafka.lists("orders")[1:] == [[1, 2, 3]] * 3
