"""What goes through all partitions of a plan or of a rollback is computed in threads, beside the event loop."""

import asyncio
import threading
from collections import defaultdict

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.loop_or_thread import IN_THE_LOOP, OFF_THE_LOOP, where
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.unit.reconcile.renamed_resources import SPEC, renamed_half_way

from kafka_rebalance.reconcile.act import plan_order
from kafka_rebalance.reconcile.decide import queue_places, teardown
from kafka_rebalance.reconcile.runs import earlier_runs, plan_maker
from kafka_rebalance.reconcile.state import record


@pytest.mark.parametrize(("most", "place"), [(4, IN_THE_LOOP), (3, OFF_THE_LOOP)], ids=["few", "many"])
async def test_the_order_of_the_queue(monkeypatch, most, place):
    """It takes seconds if hundreds of resources wait that select parts of a large cluster. Here, one selects two."""
    threads, line_up = set(), queue_places.line_up

    def noted(*given):
        threads.add(where())
        return line_up(*given)

    monkeypatch.setattr(queue_places, "line_up", noted)
    monkeypatch.setattr(queue_places, "_MANY", most)
    operator = OperatorInMemory(KafkaInMemory((1, 2, 3, 4), t=[[1, 2, 3]] * 2))
    operator.apply(brokers={"decommission": [1]}, throttle={"unlimited": True})
    await operator.until("Succeeded")
    assert threads == {place}


OF_A_PLAN = {
    plan_maker: [
        "copies_of", "still_copied", "planned_from", "known_loads", "refuse_unknown_sizes", "lists_for", "spent_by",
        "continued_copies", "loaded_run_of", "moves_of",
    ],
    earlier_runs: ["loaded_run_of", "moved_by_others", "refuse_stale"],
    record: ["loaded_run_of"],
}  # fmt: skip
"""What goes through all that a run has moved, by the module that calls it."""


class TestPlanningAgain:
    """What an earlier plan has moved is found out, and compared with the cluster, in threads."""

    @pytest.fixture
    def places(self, monkeypatch):
        """By function, where the tasks that plan have called it: in the event loop, or off it."""
        found = defaultdict(set)

        def noted(name, work):
            def call(*given, **options):
                if where() == OFF_THE_LOOP or asyncio.current_task() is not rounds_task:
                    found[name].add(where())
                return work(*given, **options)

            return call

        rounds_task = None
        for module, names in OF_A_PLAN.items():
            for name in names:
                monkeypatch.setattr(module, name, noted(f"{module.__name__}.{name}", getattr(module, name)))

        def begin():
            nonlocal rounds_task
            rounds_task = asyncio.current_task()
            found.clear()
            return found

        return begin

    async def test_after_an_edit(self, places):
        """The run has moved two partitions, and copies two; it has lists from a ConfigMap."""
        operator = await half_assigned()
        found = places()
        operator.write(*(("t", number, [4, 2, 5]) for number in range(6)))
        operator.edit(execution={"parallelPartitionCount": 3}, topics={"exclude": ["x"]})
        operator.kafka.arrive()
        await operator.until("Succeeded")
        assert operator.kafka.lists("t") == [[4, 2, 5]] * 6
        assert set().union(*found.values()) == {OFF_THE_LOOP}
        assert {"copies_of", "planned_from", "moved_by_others", "spent_by", "loaded_run_of"} <= {
            name.rpartition(".")[2] for name in found
        }

    async def test_after_a_takeover(self, places):
        """Of up to 10 runs."""
        operator = await renamed_half_way()
        operator.apply_another(takesOver="r", **SPEC)
        found = places()
        operator.delete()
        await operator.until_true(lambda: not operator.exists("r"))
        operator.kafka.arrive()
        await operator.until_true(lambda: operator.state_of() == "Succeeded")
        assert set().union(*found.values()) == {OFF_THE_LOOP}
        assert "kafka_rebalance.reconcile.runs.earlier_runs.loaded_run_of" in found

    @pytest.mark.parametrize("edited", [True, False], ids=["edited", "deleted"])
    async def test_what_happens_meanwhile_wins(self, monkeypatch, edited):
        """The moves of the run are read before the thread looks at them. What then arrives supersedes the plan."""
        operator = await half_assigned()
        looked, goes_on, moved_by_others = threading.Event(), threading.Event(), earlier_runs.moved_by_others

        def late(*given):
            looked.set()
            assert goes_on.wait(60)
            return moved_by_others(*given)

        monkeypatch.setattr(earlier_runs, "moved_by_others", late)
        operator.edit(topics={"exclude": ["x"]})
        operator.kafka.arrive()
        while operator.rebalance.memory.planning is None:
            await operator.engine.tick()
        planning = operator.rebalance.memory.planning
        await asyncio.to_thread(looked.wait, 60)
        if edited:
            operator.write(*(("t", number, [4, 2, 5]) for number in range(6)))
            operator.edit(topics={"exclude": ["y"]})
        else:
            operator.delete()
        goes_on.set()
        await asyncio.wait({planning})
        if edited:
            await operator.until("Succeeded")
        else:
            await operator.until_true(lambda: not operator.engine.rebalances)
        assert operator.kafka.lists("t") == [[4, 2, 5] if edited else [1, 2, 3]] * 6


async def half_assigned():
    """Two of six partitions have the lists of a ConfigMap, two are on the way."""
    operator = OperatorInMemory(KafkaInMemory(range(1, 7), t=[[1, 2, 3]] * 6))
    lists = (("t", number, [4, 2, 3]) for number in range(6))
    operator.assign(*lists, execution={"parallelPartitionCount": 2}, throttle={"unlimited": True})
    await operator.until_true(lambda: operator.kafka.lists("t").count([4, 2, 3]) >= 2)
    operator.kafka.slow = {4}
    await operator.until_true(lambda: len(operator.kafka.flying) == 2)
    return operator


class Compared(frozenset):
    """Notes where it is compared with another set."""

    places = ()

    def __le__(self, other):
        Compared.places += (where(),)
        return super().__le__(other)


@pytest.mark.parametrize(("many", "place"), [(1, OFF_THE_LOOP), (1000, IN_THE_LOOP)], ids=["many", "few"])
async def test_a_rollback_is_compared_once_with_what_many_resources_select(monkeypatch, many, place):
    """Users create any number of resources. Usually each selects everything, and a comparison takes milliseconds."""
    operator = await renamed_half_way()
    monkeypatch.setattr(plan_order, "_MANY", many)
    monkeypatch.setattr(teardown, "frozenset", Compared, raising=False)
    monkeypatch.setattr(Compared, "places", ())
    operator.delete()
    lists = {"configMapRef": {"name": "missing", "key": "k"}}
    for number in range(10):
        operator.apply_another(f"new-{number}", strategy="Assignment", assignment=lists)
    for _ in range(3):
        Compared.places = ()
        await operator.round()
    assert Compared.places == (place,)
