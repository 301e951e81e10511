"""A rollback that was asked for is carried out, unless a resource takes over that is the same under another name."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, REBALANCES
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.reconcile.runs import opening

FAST = {"unlimited": True}
SPEC = {"throttle": FAST, "brokers": {"include": [4, 5, 6]}, "execution": {"parallelPartitionCount": 2}}
BEFORE = [[1, 2, 3]] * 6


class Renamed(OperatorInMemory):
    """``r`` and a second resource."""

    def apply_another(self, name="new", **spec):
        created = self.clock.at.isoformat()
        metadata = {"name": name, "namespace": "kafka", "uid": f"u-{name}", "creationTimestamp": created}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, **spec}
        self._see(self.kube.create(REBALANCES, {"metadata": metadata, "spec": spec}))

    def delete_another(self, name="new"):
        self._see(self.kube.delete(REBALANCES, "kafka", name, self.clock.at.isoformat()))

    def state_of(self, name="new"):
        body = self.kube.resources.get((REBALANCES, "kafka", name), {})
        conditions = body.get("status", {}).get("conditions", ())
        return next((c["reason"] for c in conditions if c["type"] == "Ready"), None)

    @property
    def ends(self):
        """Each has an event for the status and one for the end."""
        return list(dict.fromkeys(reason for reason, _ in self.kube.events if reason in {"TakenOver", "RolledBack"}))

    def exists(self, name):
        return (REBALANCES, "kafka", name) in self.kube.resources


@pytest.fixture
async def half_moved():
    """Some partitions have arrived, two are in flight."""
    kafka = KafkaInMemory(range(1, 7), t=BEFORE)
    operator = Renamed(kafka)
    operator.apply(**SPEC)
    await operator.until_true(lambda: sum(set(held) == {4, 5, 6} for held in kafka.lists("t")) >= 2)
    kafka.slow = {4, 5, 6}
    await operator.until_true(lambda: len(kafka.flying) == 2)
    return operator


def arrived(kafka):
    return [n for n, held in enumerate(kafka.lists("t")) if set(held) == {4, 5, 6}]


class TestRename:
    @pytest.mark.parametrize("first", ["applied", "deleted"])
    async def test_goes_on(self, half_moved, first):
        """Nothing is moved back; the deletion of the new one leads to before the old one."""
        operator, kafka = half_moved, half_moved.kafka
        there = arrived(kafka)
        if first == "applied":
            operator.apply_another(**SPEC)
            await operator.round()
        operator.delete()
        if first == "deleted":
            operator.apply_another(**SPEC)
        sent = len(kafka.altered)
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert operator.ends == ["TakenOver"]
        assert not {f"t-{n}" for n in there} & {tp for tp, to in kafka.altered[sent:]}
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert all(set(held) == {4, 5, 6} for held in kafka.lists("t"))  # it had succeeded

    async def test_goes_on_where_planning_has_to_be_repeated(self, half_moved, monkeypatch):
        """Metadata were stale at the first attempt."""
        operator = half_moved
        make_plan, stale = opening.make_plan, [Transient("MetadataStale", "reading again", 1.0)]

        async def stale_once(*arguments):
            if stale:
                raise stale.pop()
            return await make_plan(*arguments)

        monkeypatch.setattr(opening, "make_plan", stale_once)
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["TakenOver"]

    async def test_deleting_the_new_one_leads_to_before_the_old_one(self, half_moved):
        """While it runs, or before it has a plan of its own."""
        operator, kafka = half_moved, half_moved.kafka
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert operator.ends == ["TakenOver", "RolledBack"]
        assert kafka.lists("t") == BEFORE

    @pytest.mark.parametrize("then", ["goes on", "deleted"])
    async def test_killed_when_the_old_run_was_handed_over(self, half_moved, then):
        """The plan that the new one had made before is not carried out without the origins that it inherits."""
        operator, kafka = half_moved, half_moved.kafka
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        operator.restart()
        kafka.arrive()
        if then == "goes on":
            await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert kafka.lists("t") == BEFORE

    @pytest.mark.parametrize("then", ["goes on", "deleted"])
    async def test_no_answer_when_the_run_was_stored(self, half_moved, monkeypatch, then):
        """It is not begun a second time: that one would inherit nothing, and nothing would be moved back."""
        operator, kafka, lost = half_moved, half_moved.kafka, []
        operator.delete()
        operator.apply_another(**SPEC)
        await operator.until_true(lambda: not operator.exists("r"))
        save = RunStore.save

        async def without_answer(store, run):
            await save(store, run)
            if run.uid == "u-new" and not lost:
                lost.append(run)
                raise Transient("ApiServerUnreachable", "no answer")

        monkeypatch.setattr(RunStore, "save", without_answer)
        if then == "goes on":
            await operator.until_true(lambda: bool(lost))
            kafka.arrive()
            await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert lost
        assert kafka.lists("t") == BEFORE


class TestOthers:
    async def test_hours_later_nobody_takes_over(self, half_moved):
        """The nightly job is applied four hours into the rollback."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.slow = {1, 2, 3}
        operator.delete()
        for _ in range(8):
            await operator.round()
        operator.clock.at += timedelta(hours=4)
        operator.apply_another(strategy="PreferredLeaders")
        for _ in range(3):
            await operator.round()
        assert operator.state_of() == "Queued"
        assert operator.exists("r")
        kafka.arrive()
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["RolledBack"]
        assert kafka.lists("t") == BEFORE

    async def test_one_that_plans_something_else(self, half_moved):
        """Created in the same minute, for the same topics: its plan leaves the partitions where a rollback leads to."""
        operator, kafka = half_moved, half_moved.kafka
        operator.delete()
        operator.apply_another(strategy="PreferredLeaders")
        kafka.arrive()
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["RolledBack"]
        assert [sorted(held) for held in kafka.lists("t")] == BEFORE

    async def test_one_that_names_it(self, half_moved):
        """At any time before the rollback has ended."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.slow = {1, 2, 3}
        operator.delete()
        for _ in range(8):
            await operator.round()
        operator.clock.at += timedelta(hours=4)
        operator.apply_another(**SPEC, takesOver="r")
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert operator.ends == ["TakenOver"]
        assert all(set(held) == {4, 5, 6} for held in kafka.lists("t"))

    async def test_one_that_names_it_and_wants_other_topics(self, half_moved):
        """It begins nothing before it has inherited the origins: its own deletion moves everything back."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.create("u", [[1, 2, 3]] * 2)
        operator.apply_another(**SPEC, topics={"include": ["u"]}, takesOver="r", approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")
        operator.delete()
        operator._see(operator.kube.edit(REBALANCES, "kafka", "new", approval={"policy": "Automatic"}))
        await operator.until_true(lambda: not operator.exists("r"))
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Rebalancing")
        operator.delete_another()
        await operator.until_true(lambda: not operator.exists("new"))
        assert operator.ends == ["TakenOver", "RolledBack"]
        assert kafka.lists("t") == BEFORE
        assert kafka.lists("u") == [[1, 2, 3]] * 2

    async def test_the_one_that_takes_over_waits_until_the_other_has_ended(self, half_moved):
        """Reassignments in flight cannot be cancelled yet; the new resource has other partitions, and is approved."""
        operator, kafka = half_moved, half_moved.kafka
        kafka.create("u", [[1, 2, 3]] * 2)
        operator.apply_another(**SPEC, topics={"include": ["u"]}, takesOver="r", approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of() == "AwaitingApproval")
        flying = {tp: state for tp, state in kafka.states.items() if state.in_flight}
        for tp, state in flying.items():
            kafka.states[tp] = replace(state, isr=frozenset(state.adding), leader=state.adding[0])
        operator.delete()
        operator._see(operator.kube.edit(REBALANCES, "kafka", "new", approval={"policy": "Automatic"}))
        for _ in range(10):
            await operator.round()
        assert (operator.state_of("r"), operator.state_of()) == ("TakenOver", "Queued")
        assert not any(tp.startswith("u-") for tp, _ in kafka.altered)
        kafka.states |= flying
        await operator.until_true(lambda: not operator.exists("r"))
        assert operator.ends == ["TakenOver"]
        kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")


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


class TestPlanInTheMaking:
    async def test_is_dropped_when_a_run_is_handed_over(self, half_moved, monkeypatch):
        """It was begun without the origins that the resource now inherits."""
        operator, kafka = half_moved, half_moved.kafka
        operator.edit(execution={"parallelPartitionCount": 2, "suspend": True})
        kafka.arrive()
        await operator.until_true(lambda: operator.state == "Suspended" and not kafka.flying)
        go_on, make_plan = asyncio.Event(), opening.make_plan

        async def slow(*arguments):
            await go_on.wait()
            return await make_plan(*arguments)

        monkeypatch.setattr(opening, "make_plan", slow)
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


async def a_tick(operator):
    """A round that does not wait for the plan that it started."""
    await operator.engine.tick()
    operator.clock.at += timedelta(seconds=1)
    await asyncio.sleep(0)
