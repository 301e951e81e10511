"""A resource that takes over inherits the origins of the run before, once."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.unit.reconcile.renamed_resources import BEFORE, SPEC, Renamed, a_tick, arrived, renamed_half_way

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.retention import sweep
from kafka_rebalance.reconcile.runs import plan_maker
from kafka_rebalance.reconcile.state.record import Stores


@pytest.fixture
async def half_moved():
    return await renamed_half_way()


class TestInheritance:
    """It is used once, by the first run that begins with it."""

    @pytest.fixture
    async def succeeded(self):
        """``new`` has taken over from ``r`` and succeeded; a week later it is edited, and its plan is not approved."""
        kafka = KafkaInMemory(range(1, 8), t=BEFORE)
        operator = Renamed(kafka)
        operator.apply(**SPEC)
        await operator.until_true(lambda: len(arrived(kafka)) >= 2)
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: len(kafka.flying) == 2)
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        return operator

    @staticmethod
    async def edited(operator):
        operator.clock.at += timedelta(days=7)
        spec = {"brokers": {"include": [4, 5, 7]}, "approval": {"policy": "Manual"}}
        operator._see(operator.kube.edit(REBALANCES, "kafka", "new", **spec))
        await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")

    @pytest.mark.parametrize("cleared", [True, False])
    @pytest.mark.parametrize("then", ["deleted", "goes on"])
    async def test_what_has_succeeded_is_not_rolled_back(self, succeeded, cleared, then):
        """Also if the operator was killed before it was recorded that the inheritance is used up."""
        operator, kafka = succeeded, succeeded.kafka
        runs, there = RunStore(operator.kube), kafka.lists("t")
        old = await runs.load("u-1")
        assert old.successor is None
        if not cleared:
            await runs.save(replace(old, successor="u-new"))
        await self.edited(operator)
        operator.restart()
        if then == "goes on":
            await operator.until_true(lambda: operator.engine.rebalances["u-new"].record.loaded_run is not None)
            assert operator.engine.rebalances["u-new"].record.run.started_at is None
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t") == there

    @pytest.mark.parametrize("cleared", [True, False])
    async def test_a_rollback_is_not_repeated(self, half_moved, cleared):
        """The records of ``new`` are deleted, and the operator is killed before the finalizer is removed."""
        operator, kafka = half_moved, half_moved.kafka
        runs = RunStore(operator.kube)
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        if not cleared:
            await runs.save(replace(await runs.load("u-1"), successor="u-new"))
        remove, failed = operator.kube.patch_finalizers, []

        async def away(*_arguments, **_more):
            failed.append("no answer")
            raise Transient("ApiServerUnreachable", "no answer")

        operator.kube.patch_finalizers = away
        operator.delete_another()
        await operator.until_true(lambda: bool(failed))
        assert (kafka.lists("t"), await runs.load("u-new")) == (BEFORE, None)
        kafka.assign("t", 0, 4, 2, 3)
        operator.kube.patch_finalizers = remove
        operator.restart()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t")[0] == [4, 2, 3]

    @pytest.mark.parametrize("sent", [True, False])
    async def test_of_two_runs_of_which_the_first_has_sent_nothing(self, half_moved, sent):
        """The new one is deleted before it has a plan: what the second has moved is moved back."""
        operator, kafka = half_moved, half_moved.kafka
        runs, plans = RunStore(operator.kube), PlanStore(operator.kube)
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        old = await runs.load("u-1")
        stored = await plans.load("u-1", old.plan_hash)
        await plans.save("u-0", old.plan_hash, "c", stored.plan, operator.clock.at)
        first = replace(old, uid="u-0", name="first", opened_at=old.opened_at - timedelta(hours=1))
        if sent:
            await OriginStore(operator.kube).replace("u-0", first.run_id, ())
        await runs.save(first if sent else replace(first, started_at=None))
        operator.restart()
        kafka.arrive()
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t") == BEFORE

    async def test_reaches_an_heir_that_was_planned_by_a_faster_clock(self, half_moved):
        """Its plan seems to be younger than the end of the run that it takes over. Another operator ends that run."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.create("u", [[1, 2, 3]] * 2)
        operator.apply_another(**SPEC, topics={"include": ["u"]}, takesOver="r", approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")
        operator.clock.at -= timedelta(seconds=30)
        operator.restart()
        operator.delete()
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["TakenOver"]
        kafka.arrive()
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert [sorted(held) for held in kafka.lists("t")] == BEFORE

    @pytest.mark.parametrize("restart", [False, True])
    async def test_reaches_the_heir_of_a_run_that_is_let_go(self, half_moved, restart):
        """What was in flight could not be cancelled. The plan that the heir has was made without the origins."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.create("u", [[1, 2, 3]] * 2)
        operator.apply_another(**SPEC, topics={"include": ["u"]}, takesOver="r", approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")
        there = arrived(kafka)
        for tp, state in list(kafka.states.items()):
            if state.in_flight:
                kafka.states[tp] = replace(state, isr=frozenset(state.adding), leader=state.adding[0])
        operator.delete()
        for _ in range(4):
            await operator.round()
        assert operator.exists("r")
        operator.order(LET_GO_ANNOTATION, "true")
        for _ in range(4):
            await operator.round()
        assert not operator.exists("r")
        if restart:
            operator.restart()
        kafka.arrive()
        for tp, state in list(kafka.states.items()):
            kafka.states[tp] = replace(state, isr=frozenset(state.replicas))
        operator._see(operator.kube.edit(REBALANCES, "kafka", "new", approval={"policy": "Automatic"}))
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        kafka.arrive()
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert [kafka.lists("t")[n] for n in there] == [[1, 2, 3]] * len(there)

    @pytest.mark.parametrize("restart", [False, True])
    @pytest.mark.parametrize("topics", ["t", "u"])
    @pytest.mark.parametrize("deleted", ["without a plan", "with a plan", "after the copies arrived"])
    async def test_copies_that_were_let_go_go_back_too(self, half_moved, topics, deleted, restart):
        """They are in flight when the heir is deleted, or when its plan is made; some add to the original replicas."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.create("u", [[1, 2, 3]] * 2)
        operator.apply_another(**SPEC, topics={"include": [topics]}, takesOver="r", approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of() in {"AwaitingApproval", "Queued"})
        flying = {tp: state for tp, state in kafka.states.items() if state.in_flight}
        for tp, state in flying.items():
            kafka.states[tp] = replace(state, isr=frozenset(state.adding), leader=state.adding[0])
        operator.delete()
        for _ in range(4):
            await operator.round()
        operator.order(LET_GO_ANNOTATION, "true")
        if deleted == "without a plan":
            operator.delete_another()
        for _ in range(6):
            await operator.round()
        assert not operator.exists("r")
        assert kafka.flying == {str(tp) for tp in flying}
        if restart:
            operator.restart()
        kafka.states |= flying
        if deleted == "after the copies arrived":
            operator._see(operator.kube.edit(REBALANCES, "kafka", "new", approval={"policy": "Automatic"}))
            await operator.until_true(lambda: operator.state_of() == "Rebalancing")
            kafka.arrive()
            await operator.round()
        if deleted != "without a plan":
            operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t") == BEFORE
        assert kafka.lists("u") == [[1, 2, 3]] * 2


class TestRetention:
    """Records of runs whose resource is gone are deleted after 30 days."""

    async def test_a_resource_that_waits_longer_for_its_plan(self, half_moved):
        """It is deleted then, and its rollback includes the moves of the former run."""
        operator = half_moved
        operator.delete()
        operator.apply_another(**SPEC, takesOver="r")
        await operator.until_true(lambda: not operator.exists("r"))
        assert (await RunStore(operator.kube).load("u-1")).successor == "u-new"
        operator.clock.at += timedelta(days=31)
        operator.restart()
        kube = operator.kube
        stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
        assert await sweep(stores, Resources(kube, operator.clock.now), operator.clock) == 0
        operator.delete_another()
        operator.kafka.arrive()
        await operator.until_true(lambda: not operator.exists("new"))
        assert operator.kafka.lists("t") == BEFORE


class TestPlanInTheMaking:
    async def test_is_dropped_when_a_run_is_handed_over(self, half_moved, monkeypatch):
        """It was begun without the origins that the resource now inherits."""
        operator, kafka = half_moved, half_moved.kafka
        operator.edit(execution={"parallelPartitionCount": 2, "suspend": True})
        kafka.arrive()
        await operator.until_true(lambda: operator.state == "Suspended" and not kafka.flying)
        go_on, make_plan = asyncio.Event(), plan_maker.make_plan

        async def slow(*arguments):
            await go_on.wait()
            return await make_plan(*arguments)

        monkeypatch.setattr(plan_maker, "make_plan", slow)
        operator.apply_another(**SPEC, takesOver="r")
        new = operator.engine.rebalances["u-new"]
        for _ in range(20):
            await a_tick(operator)
            if new.memory.planning is not None:
                break
        operator.delete()
        for _ in range(20):
            await a_tick(operator)
            if not operator.exists("r"):
                break
        assert operator.ends == ["TakenOver"]
        go_on.set()
        kafka.slow = {4, 5, 6}
        await operator.until_true(lambda: bool(kafka.flying))
        kafka.arrive()
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t") == BEFORE
