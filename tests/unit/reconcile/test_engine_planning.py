"""How many plans an engine makes at a time: each may need hundreds of MB."""

import asyncio
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.renamed_resources import Renamed, a_tick

from kafka_rebalance.api.v1alpha1 import REBALANCES, UNDO_ANNOTATION
from kafka_rebalance.errors import Transient
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.act.retention import limit
from kafka_rebalance.reconcile.runs import plan_maker, solving
from kafka_rebalance.reconcile.runs.plan_memory import PlanMemory
from kafka_rebalance.reconcile.state import namespace_turns
from kafka_rebalance.reconcile.state.namespace_turns import AllInlineTurns
from kafka_rebalance.reconcile.state.record import Stores

BY_LOAD = {"goals": {"load": {"resources": [{"name": "Disk"}]}}}
FAST = {"throttle": {"unlimited": True}}


async def test_one_at_a_time(monkeypatch):
    """The number of resources does not matter: a user can create as many as the API server accepts.

    A plan that waits for another one has not read the cluster yet.
    """
    make_plan, known_ones, now, most = plan_maker.make_plan, plan_maker.known_ones, 0, 0

    def read(*arguments):
        nonlocal now, most
        now += 1
        most = max(most, now)
        return known_ones(*arguments)

    async def observed(*arguments):
        nonlocal now
        await asyncio.sleep(0)
        made = await make_plan(*arguments)
        now -= 1
        return made

    monkeypatch.setattr(plan_maker, "known_ones", read)
    monkeypatch.setattr(plan_maker, "make_plan", observed)
    topics = {f"t{number}": [[1], [1]] for number in range(4)}
    operator = Renamed(KafkaInMemory([1, 2], **topics))
    for topic in topics:
        operator.apply_another(topic, topics={"include": [topic]})
    for _ in range(8):
        await operator.round()
    assert most == 1


async def test_a_plan_that_waits_for_one_in_another_cluster_keeps_nobody_waiting(monkeypatch):
    """A namespace has one process for its plans, which may take half an hour in another cluster.

    Others of a shared cluster know nothing of that one. Theirs are made in a thread or in a process of their own.
    """
    begun, ends = [], asyncio.Event()

    async def asked(*_):
        begun.append(1)
        await ends.wait()
        raise Transient(Reason.PLANNING_FAILED, "out of memory", 60)

    monkeypatch.setattr(solving, "_asked", asked)
    monkeypatch.setattr(solving, "_memory", PlanMemory(lambda: None, 1))
    theirs, shared = (Renamed(KafkaInMemory([1, 2], a=[[1], [1]], b=[[1], [1]])) for _ in range(2))
    theirs.apply_another("large", topics={"include": ["a"]}, **BY_LOAD)
    for _ in range(3):
        await a_tick(theirs)
    async with asyncio.timeout(20):
        while not begun:
            await a_tick(theirs)
        shared.apply_another("waits", topics={"include": ["a"]}, **BY_LOAD)
        for _ in range(5):
            await a_tick(shared)
            await asyncio.sleep(0.01)
        shared.apply_in("others", "urgent", topics={"include": ["b"]}, throttle={"unlimited": True})
        while shared.state_of("urgent", "others") != "Succeeded":
            await a_tick(shared)
    assert shared.state_of("waits") == "Planning"
    assert begun == [1]
    ends.set()
    async with asyncio.timeout(20):
        while len(begun) < 2:
            await a_tick(theirs)
            await a_tick(shared)


class TestInAProcess:
    """A plan by load needs a process. The plan of namespace a in one cluster takes until ``ends``; it then fails."""

    @pytest.fixture
    async def shared(self, monkeypatch):
        """Another cluster. ``begun``: one more item for each process."""
        begun, ends, over, answers = [], asyncio.Event(), asyncio.Event(), solving._asked

        async def asked(*question):
            begun.append(1)
            if len(begun) > 1 and not over.is_set():
                return await answers(*question)
            await ends.wait()
            raise Transient(Reason.PLANNING_FAILED, "out of memory", 3600)

        monkeypatch.setattr(solving, "_asked", asked)
        monkeypatch.setattr(solving, "_memory", PlanMemory(lambda: None, 1))
        theirs, shared = (Renamed(KafkaInMemory([1, 2, 3], a=[[1, 2]] * 6)) for _ in range(2))
        shared.begun, shared.other_ends = begun, ends
        theirs.apply_in("a", "large", **BY_LOAD)
        await self.until(theirs, lambda: begun)
        yield shared
        over.set()  # the end of the event loop would wait for ever for a process that is being started
        ends.set()
        await self.until(theirs, lambda: theirs.state_of("large", "a") == "PlanningFailed")

    async def until(self, operator, condition):
        async with asyncio.timeout(120):
            while not condition():
                await a_tick(operator)
                await asyncio.sleep(0.001)

    async def waits(self, shared, **spec):
        """A rebalance of namespace a waits for its other plan."""
        shared.apply_in("a", "waits", **BY_LOAD, **FAST, **spec)
        await self.until(shared, lambda: solving._memory._asking["a"] == 2)
        await self.until(shared, lambda: shared.state_of("waits", "a") == "Planning")

    async def test_each_namespace_has_one(self, shared):
        """A plan of another namespace does not wait."""
        shared.apply_in("b", "plans", **BY_LOAD, **FAST)
        await self.until(shared, lambda: shared.state_of("plans", "b") == "Succeeded")
        assert len(shared.begun) == 2

    async def test_a_higher_priority_does_not_wait_for_a_plan(self, shared):
        """Also if it wants the same partitions: nothing has been sent for that plan."""
        await self.waits(shared)
        shared.apply_in("b", "urgent", priority=1000, brokers={"decommission": [1]}, **FAST)
        await self.until(shared, lambda: shared.state_of("urgent", "b") == "Succeeded")
        assert shared.state_of("waits", "a") in {"Queued", "Planning"}
        assert len(shared.begun) == 1

    async def test_an_edit_is_planned_at_once(self, shared):
        """The plan for the spec of before is given up."""
        await self.waits(shared)
        shared._see(
            shared.kube.edit(REBALANCES, "a", "waits", kafka={"bootstrapServers": "kafka:9092"}, goals={}, **FAST)
        )
        await self.until(shared, lambda: shared.state_of("waits", "a") == "Succeeded")
        assert len(shared.begun) == 1

    async def test_the_brokers_are_those_of_its_beginning(self, shared):
        """Not those of half an hour before."""
        await self.waits(shared)
        del shared.kafka.brokers[BrokerId(3)]
        shared.other_ends.set()
        await self.until(shared, lambda: shared.state_of("waits", "a") == "Succeeded")
        assert {broker for replicas in shared.kafka.lists("a") for broker in replicas} == {1, 2}


class TestPlansInMemory:
    """Those of a namespace's inline connections are limited: its servers may claim any number of partitions."""

    @staticmethod
    def operator_with(topics, turns):
        operator = Renamed(KafkaInMemory([1, 2, 3], **{topic: [[1], [1], [1]] for topic in topics}), turns=turns)
        for topic in topics:
            operator.apply_another(topic, topics={"include": [topic]}, approval={"policy": "Manual"})
        return operator

    @staticmethod
    def states(operator):
        return [operator.state_of(topic) for topic in ("a", "b", "c")]

    async def test_the_next_plan_waits_until_another_one_ends(self, monkeypatch):
        """Only one goes beyond the limit. What is loaded after a restart counts. A refused one is not made at all."""
        made, make_plan = [], plan_maker.make_plan
        monkeypatch.setattr(plan_maker, "make_plan", lambda *arguments: made.append(1) or make_plan(*arguments))
        monkeypatch.setattr(namespace_turns, "MOST_ROWS", 3)
        operator = self.operator_with(["a", "b", "c"], AllInlineTurns().of("kafka"))
        for _ in range(3):
            await operator.round()
            operator.clock.at += timedelta(minutes=1)
        assert self.states(operator) == ["AwaitingApproval", "AwaitingApproval", "TooManyPlans"]
        operator.turns = AllInlineTurns().of("kafka")
        operator.restart()
        for _ in range(3):
            await operator.round()
            operator.clock.at += timedelta(minutes=1)
        assert self.states(operator) == ["AwaitingApproval", "AwaitingApproval", "TooManyPlans"]
        assert len(made) == 2
        operator.delete_another("a")
        await operator.until_true(lambda: not operator.exists("a"))
        operator.clock.at += timedelta(minutes=1)
        await operator.until_true(lambda: operator.state_of("c") == "AwaitingApproval")

    async def test_those_of_other_clusters_of_the_namespace_count(self, monkeypatch):
        """Not those of other namespaces."""
        monkeypatch.setattr(namespace_turns, "MOST_ROWS", 1)
        turns = AllInlineTurns()
        found = []
        for topic, namespace in (("a", "kafka"), ("b", "kafka"), ("c", "other")):
            found.append((topic, self.operator_with([topic], turns.of(namespace))))
            for _ in range(3):
                await found[-1][1].round()
        states = [operator.state_of(topic) for topic, operator in found]
        assert states == ["AwaitingApproval", "TooManyPlans", "AwaitingApproval"]

    async def test_another_plan_of_a_resource_replaces_its_own(self, monkeypatch):
        monkeypatch.setattr(namespace_turns, "MOST_ROWS", 1)
        operator = self.operator_with(["a"], AllInlineTurns().of("kafka"))
        await operator.until_true(lambda: operator.state_of("a") == "AwaitingApproval")
        before = operator.engine.rebalances["u-a"].record.run.planning_hash
        operator.see(operator.kube.edit(REBALANCES, "kafka", "a", brokers={"include": [2, 3]}))
        await operator.until_true(lambda: operator.engine.rebalances["u-a"].record.run.planning_hash != before)
        await operator.until_true(lambda: operator.state_of("a") == "AwaitingApproval")

    async def test_an_undo_waits_too(self, monkeypatch):
        """It loads the plan of a run that has ended, of which there may be any number."""
        monkeypatch.setattr(namespace_turns, "MOST_ROWS", 1)
        operator = Renamed(KafkaInMemory([1, 2], a=[[1], [1]], b=[[1], [1]]), turns=AllInlineTurns().of("kafka"))
        operator.apply_another("a", topics={"include": ["a"]}, throttle={"unlimited": True})
        await operator.until_true(lambda: operator.state_of("a") == "Succeeded")
        operator.apply_another("b", topics={"include": ["b"]}, approval={"policy": "Manual"})
        await operator.until_true(lambda: operator.state_of("b") == "AwaitingApproval")
        operator.order_another(UNDO_ANNOTATION, operator.engine.rebalances["u-a"].record.run.plan_hash, "a")
        await operator.until_true(lambda: operator.state_of("a") == "TooManyPlans")
        operator.delete_another("b")
        await operator.until_true(lambda: operator.state_of("a") == "Undone")

    async def test_those_of_kafka_connections_are_not_limited(self, monkeypatch):
        """An administrator has chosen their servers."""
        monkeypatch.setattr(namespace_turns, "MOST_ROWS", 1)
        operator = self.operator_with(["a", "b", "c"], None)
        await operator.until_true(lambda: self.states(operator) == ["AwaitingApproval"] * 3)


@pytest.mark.parametrize("is_gone", [False, True])
async def test_a_resource_that_is_gone_without_a_deletion_seen(is_gone):
    """Others removed its finalizer while the plan was made. The plan that is stored after that is deleted."""
    operator = OperatorInMemory(KafkaInMemory([1, 2], t=[[1], [1]]))
    operator.apply()
    for _ in range(2):
        await operator.engine.tick()
    rebalance = operator.engine.rebalances.pop("u-1")
    if is_gone:
        operator.kube.resources.clear()
    await rebalance.memory.planning
    stores = Stores(PlanStore(operator.kube), OriginStore(operator.kube), RunStore(operator.kube))
    assert await limit(stores, Resources(operator.kube, operator.clock.now)) == 0
    assert any(name.startswith("plan-") for name in operator.kube.config_maps) is not is_gone


async def test_a_deletion_while_the_plan_is_stored(monkeypatch):
    """The API server still carries the request out. Nothing of it may stay: no run names the plan."""
    operator = OperatorInMemory(KafkaInMemory([1, 2], t=[[1], [1]]))
    create, goes_on, under_way = operator.kube.create_config_map, asyncio.Event(), []
    asked = asyncio.Event()

    async def created_late(body):
        await goes_on.wait()
        return await create(body)

    async def request(body):
        if not body["metadata"]["name"].startswith("plan-"):
            return await create(body)
        under_way.append(asyncio.create_task(created_late(body)))
        asked.set()
        return await asyncio.shield(under_way[-1])

    monkeypatch.setattr(operator.kube, "create_config_map", request)
    operator.apply()
    for _ in range(2):
        await operator.engine.tick()
    await asked.wait()
    operator.delete()
    deleting = asyncio.create_task(operator.until_true(lambda: not operator.engine.rebalances))
    await asyncio.wait({deleting, asyncio.create_task(asyncio.to_thread(int))}, return_when=asyncio.FIRST_COMPLETED)
    goes_on.set()
    await asyncio.gather(deleting, *under_way)
    assert [name for name in operator.kube.config_maps if name.startswith("plan-")] == []
