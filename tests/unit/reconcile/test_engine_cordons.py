"""Cordons on brokers that are dead when the run ends: they are removed when the brokers are back."""

from dataclasses import replace

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.origin_runs import FAST
from tests.unit.reconcile.renamed_resources import Renamed

from kafka_rebalance.api.v1alpha1 import UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.ports import ConfigSource, ConfigValue
from kafka_rebalance.kube.store import PlanStore, RunStore
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reconcile.act.cordoning import CONFIG

FOUR = BrokerId(4)


class Brokers(KafkaInMemory):
    """Brokers that offer cordons."""

    def _read(self, key, own, unset):
        offered = key[1] == CONFIG and key not in self.values
        return ConfigValue("", ConfigSource.DEFAULT) if offered else super()._read(key, own, unset)

    def die(self, broker):
        self.dead = self.brokers.pop(broker)
        self.silent.add(broker)
        self.states = {tp: replace(state, isr=state.isr - {broker}) for tp, state in self.states.items()}

    def come_back(self):
        self.brokers[self.dead.id] = self.dead
        self.silent.clear()
        self.states = {tp: replace(state, isr=frozenset(state.replicas)) for tp, state in self.states.items()}

    @property
    def cordoned(self):
        return sorted(where for where, name in self.values if name == CONFIG)


def emptying(kafka, **spec):
    """An operator with a rebalance that empties broker 4."""
    operator = OperatorInMemory(kafka)
    operator.apply(throttle=FAST, brokers={"decommission": [4]}, **spec)
    return operator


@pytest.fixture
def kafka():
    return Brokers(range(1, 6), t=[[1, 2, 4]] * 2)


@pytest.fixture
async def begun(kafka):
    """Broker 4 is cordoned and being emptied when it dies."""
    kafka.slow = {3, 5}
    operator = emptying(kafka)
    await operator.until_true(lambda: bool(kafka.flying))
    assert kafka.cordoned == [4]
    kafka.die(FOUR)
    return operator


async def gone(operator):
    operator.delete()
    await operator.until_true(lambda: not operator.engine.rebalances)


async def rounds(operator, count=3):
    for _ in range(count):
        await operator.round()


@pytest.mark.parametrize("restart", [False, True])
async def test_a_deletion_does_not_wait_and_the_cordon_goes_when_the_broker_is_back(begun, kafka, restart):
    await gone(begun)
    assert "; the cordons of brokers 4 are removed when these answer" in begun.kube.events[-1][1]
    await rounds(begun)
    assert kafka.cordoned == [4]
    if restart:
        begun.restart()
    assert not await begun.engine._nothing_left()
    kafka.come_back()
    await rounds(begun)
    assert kafka.cordoned == []
    assert await begun.engine._nothing_left()


async def test_after_an_undo(kafka):
    operator = emptying(kafka)
    await operator.until("Succeeded")
    assert kafka.cordoned == [4]
    kafka.die(FOUR)
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.until("Undone", "RolledBackPartially")
    kafka.come_back()
    await rounds(operator)
    assert kafka.cordoned == []


async def test_what_somebody_cordons_after_an_undo_stays(kafka):
    """The cordon of the run was left to the ledger, and is removed. A later run must not remove another one."""
    operator = emptying(kafka)
    await operator.until("Succeeded")
    kafka.die(FOUR)
    operator.order(UNDO_ANNOTATION, operator.run.plan_hash)
    await operator.until("Undone", "RolledBackPartially")
    kafka.come_back()
    await rounds(operator)
    assert kafka.cordoned == []
    kafka.values[FOUR, CONFIG] = "*"
    operator.edit(brokers={"decommission": [5]})
    await operator.until("Succeeded")
    assert kafka.cordoned == [4, 5]


async def test_it_is_in_the_ledger_before_the_run_ends(begun, kafka):
    """If the ledger cannot be written, the run goes on."""
    save = begun.records.save

    async def refuse(cluster_id, ledger):
        if ledger["cordons"]:
            raise Transient("ApiServerUnreachable", "no answer")
        await save(cluster_id, ledger)

    begun.records.save = refuse
    begun.delete()
    await rounds(begun, 50)
    assert begun.run.open
    begun.records.save = save
    await begun.until_true(lambda: not begun.engine.rebalances)
    assert begun.records.kept["cordons"] == [4]


async def test_a_run_that_empties_the_broker_again_keeps_it_cordoned(begun, kafka):
    """The cordon that was left is removed first, and set again for that run."""
    await gone(begun)
    kafka.come_back()
    begun.apply(throttle=FAST, brokers={"decommission": [4]})
    await begun.until_true(lambda: begun.rebalance.record.run is not None and begun.run.cordoned == (4,))
    await rounds(begun)
    assert kafka.cordoned == [4]
    assert begun.records.kept["cordons"] == []
    kafka.arrive()
    await begun.until("Succeeded")
    assert kafka.cordoned == [4]


async def test_what_somebody_has_cordoned_since_stays(begun, kafka):
    """It is another value, so it is not ours; the record goes."""
    await gone(begun)
    kafka.come_back()
    kafka.values[FOUR, CONFIG] = "/data"
    await rounds(begun)
    assert kafka.values[FOUR, CONFIG] == "/data"
    assert begun.records.kept["cordons"] == []


async def test_a_broker_that_refuses_is_asked_again(begun, kafka):
    await gone(begun)
    kafka.come_back()
    kafka.refusing = {FOUR}
    await rounds(begun)
    assert kafka.cordoned == [4]
    kafka.refusing = set()
    await begun.until_true(lambda: not kafka.cordoned)
    assert begun.records.kept["cordons"] == []


@pytest.mark.parametrize("there", [False, True])
async def test_a_cordon_that_may_not_be_removed(begun, kafka, there):
    """If it is not there, the next one is of others. Another owner of the cluster may have the right to remove it."""
    await gone(begun)
    kafka.come_back()
    kafka.refusing, kafka.refusal = {FOUR}, "CLUSTER_AUTHORIZATION_FAILED: no"
    if not there:
        del kafka.values[FOUR, CONFIG]
    await rounds(begun, 1)
    assert begun.records.kept["cordons"] == [4]
    await rounds(begun, 4)
    assert begun.records.kept["cordons"] == ([4] if there else [])


@pytest.mark.parametrize("silent", [False, True], ids=["dead", "without an answer"])
async def test_an_edit_that_keeps_the_broker(silent):
    """The new plan succeeds before the broker lets its cordon be removed."""
    kafka = Brokers(range(1, 6), t=[[1, 2, 4]] * 2, u=[[1, 2, 3]])
    kafka.slow = {3, 5}
    operator = emptying(kafka)
    await operator.until_true(lambda: bool(kafka.flying))
    if silent:
        kafka.refusing = {FOUR}
    else:
        kafka.die(FOUR)
    operator.edit(brokers={"decommission": []}, topics={"include": ["u"]})
    await operator.until("Succeeded")
    assert operator.run.cordoned == ()
    assert kafka.cordoned == [4]
    if silent:
        kafka.refusing = set()
    else:
        kafka.come_back()
    await operator.until_true(lambda: not kafka.cordoned)
    assert operator.records.kept["cordons"] == []


class Killed(BaseException):
    """The process ends here."""


class Hanging(Brokers):
    """The first call that cordons fails with ``failure``; ``held`` is executed later."""

    held, failure = None, Transient("KafkaUnreachable", "no answer")

    async def alter_broker_configs(self, changes):
        if self.held is None and any(change.name == CONFIG for found in changes.values() for change in found):
            self.held = changes
            raise self.failure
        return await super().alter_broker_configs(changes)


@pytest.mark.parametrize("restart", [False, True])
async def test_a_call_without_an_answer_that_is_executed_late(restart):
    """It sets the cordon again after a deletion has removed it. Nobody else would remove it."""
    kafka = Hanging(range(1, 6), t=[[1, 2, 4]] * 2)
    operator = emptying(kafka)
    await operator.until_true(lambda: kafka.cordoned == [4])
    if restart:
        operator.restart()
        await operator.round()
    operator.delete()
    await operator.until_true(lambda: kafka.cordoned == [])
    await rounds(operator)
    await Brokers.alter_broker_configs(kafka, kafka.held)
    assert kafka.cordoned == [4]
    await operator.until_true(lambda: not operator.engine.rebalances)
    await rounds(operator)
    assert kafka.cordoned == []


async def test_a_call_that_is_executed_late_after_an_edit():
    """An empty plan follows. It does not end the run while the call may set the cordon again."""
    kafka = Hanging(range(1, 6), t=[[1, 2, 4]] * 2)
    operator = emptying(kafka, strategy="ForcedMovesOnly")
    await operator.until_true(lambda: kafka.cordoned == [4])
    operator.edit(brokers={})
    for _ in range(4):
        await operator.round()
    assert kafka.cordoned == []
    await Brokers.alter_broker_configs(kafka, kafka.held)
    await operator.until("Succeeded")
    await rounds(operator)
    assert kafka.cordoned == []


@pytest.mark.parametrize("edit", [False, True], ids=["deletion", "edit"])
async def test_a_call_that_was_under_way_when_the_operator_was_killed(edit):
    """The run has sent nothing else yet. The call is executed after a deletion or an edit has removed the cordon."""
    kafka = Hanging(range(1, 6), t=[[1, 2, 4]] * 2)
    kafka.failure = Killed()
    operator = emptying(kafka)
    with pytest.raises(Killed):
        await rounds(operator)
    operator.restart()
    if edit:
        operator.edit(brokers={"decommission": []})
    else:
        operator.delete()
    await rounds(operator, 5)
    await Brokers.alter_broker_configs(kafka, kafka.held)
    await rounds(operator, 30)
    assert kafka.cordoned == []


@pytest.mark.parametrize("edit", [False, True], ids=["deletion", "edit"])
async def test_a_call_without_an_answer_to_a_broker_that_dies(edit):
    """The call is executed when the run has ended, the broker is back, and the ledger has removed its cordon."""
    kafka = Hanging(range(1, 6), t=[[1, 2, 4]] * 2, u=[[1, 2, 3]])
    kafka.slow = {3, 5}
    operator = emptying(kafka)
    await operator.until_true(lambda: kafka.held is not None)
    kafka.die(FOUR)
    if edit:
        operator.edit(brokers={"decommission": []}, topics={"include": ["u"]})
    else:
        operator.delete()
    await rounds(operator, 4)
    kafka.come_back()
    await rounds(operator, 3)
    await Brokers.alter_broker_configs(kafka, kafka.held)
    await rounds(operator, 30)
    assert kafka.cordoned == []


@pytest.mark.parametrize("planned", [True, False])
async def test_of_a_resource_that_takes_a_run_over_before_its_own_begins(monkeypatch, planned):
    """It goes on with another run, whose end removes the cordon. It may be deleted before that has a plan."""
    kafka = Brokers(range(1, 7), t=[[1, 2, 4]] * 12)
    operator = Renamed(kafka)
    operator.apply(throttle=FAST, brokers={"include": [1, 2, 5]}, execution={"parallelPartitionCount": 1})
    await operator.until_true(lambda: any(4 not in held for held in kafka.lists("t")))
    create, full = operator.kube.create_config_map, [True]

    async def refuse(body):
        if full and body["metadata"]["name"].startswith("origins"):
            raise Transient("ApiServerError", "exceeded quota")
        return await create(body)

    monkeypatch.setattr(operator.kube, "create_config_map", refuse)
    operator.apply_another(throttle=FAST, brokers={"decommission": [4]}, priority=10, takesOver="r")
    while not kafka.cordoned:
        await operator.round()
        kafka.arrive()
    operator.delete()
    for _ in range(10):
        await operator.round()
        kafka.arrive()
    assert not operator.exists("r")
    full.clear()
    if planned:
        kafka.slow = {3, 5, 6}
        while not kafka.flying:
            await operator.round()
    assert kafka.cordoned == [4]
    operator.delete_another()
    kafka.slow = set()
    for _ in range(90):
        await operator.round()
        kafka.arrive()
    assert not operator.exists("new")
    assert kafka.cordoned == []


def approve(operator, plan_hash, **spec):
    operator.edit(approval={"policy": "Manual", "planHash": plan_hash}, **spec)


@pytest.fixture
async def approved():
    """A plan that empties broker 4 of topic t, approved and suspended. Broker 5 holds only another topic."""
    operator = OperatorInMemory(Brokers(range(1, 6), t=[[1, 2, 4]], u=[[5, 1, 2]]))
    spec = {"topics": {"include": ["t"]}, "brokers": {"include": [1, 2, 3], "decommission": [4]}}
    operator.apply(throttle=FAST, approval={"policy": "Manual"}, **spec)
    await operator.until("AwaitingApproval")
    approve(operator, operator.run.plan_hash, execution={"suspend": True})
    await operator.until("Suspended")
    return operator


async def test_no_broker_that_an_edit_adds_after_the_approval(approved):
    """The moves stay the same, but the broker is cordoned, and stays so after the success."""
    approved.edit(brokers={"include": [1, 2, 3], "decommission": [4, 5]}, execution={"suspend": False})
    for _ in range(10):
        await approved.round()
        assert approved.kafka.cordoned == []
    assert (approved.state, approved.run.started) == ("AwaitingApproval", False)
    approve(approved, approved.run.plan_hash)
    await approved.until("Succeeded")
    assert approved.kafka.cordoned == [4, 5]


async def test_a_plan_of_an_earlier_version_stays_approved(approved):
    """It does not name the brokers to empty, but the spec has not been edited since. An edit makes a plan that does."""
    plans, runs, run = PlanStore(approved.kube), RunStore(approved.kube), approved.run
    older = replace((await plans.load(run.uid, run.plan_hash)).plan, decommission=())
    await plans.save(run.uid, older.hash, run.cluster_id, older, run.opened_at)
    await runs.load(run.uid)
    await runs.save(replace(run, plan_hash=older.hash))
    approved.restart()
    approve(approved, older.hash, execution={"suspend": False})
    await approved.until("Succeeded")
    assert approved.run.plan_hash == older.hash
    assert approved.kafka.cordoned == [4]


async def test_what_somebody_cordons_after_a_takeover_stays():
    """The cordon of the run was left to the ledger, and is removed. Its successor is deleted before it has a plan."""
    kafka = Brokers(range(1, 6), t=[[1, 2, 4]] * 2)
    kafka.slow, operator = {3, 5}, Renamed(kafka)
    operator.apply(throttle=FAST, brokers={"decommission": [4]})
    await operator.until_true(lambda: bool(kafka.flying))
    kafka.die(FOUR)
    unplanned = {"configMapRef": {"name": "none", "key": "k"}}
    operator.apply_another(throttle=FAST, takesOver="r", strategy="Assignment", assignment=unplanned)
    await rounds(operator)
    operator.delete()
    await operator.until_true(lambda: not operator.exists("r"))
    assert operator.ends == ["TakenOver"]
    kafka.come_back()
    await rounds(operator)
    assert kafka.cordoned == []
    kafka.values[FOUR, CONFIG] = "*"
    operator.delete_another()
    await operator.until_true(lambda: not operator.exists("new"))
    assert kafka.cordoned == [FOUR]
