"""Where a plan is computed, and what is returned."""

import asyncio
import os
import signal
import subprocess
from dataclasses import replace

import pytest
from e2e.bench.waiting import wait_until

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.goals import LoadGoal, LoadResource, Strategy
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning.planner import plan
from kafka_rebalance.planning.problem.request import Goals, PartitionInput, PlanRequest
from kafka_rebalance.reconcile.runs import solving
from kafka_rebalance.reconcile.runs.solving import run_planner

BROKERS = tuple(Broker(BrokerId(number), None) for number in range(1, 5))


def request(count=8, replicas=(1, 2)):
    partitions = tuple(PartitionInput(TopicPartition("t", at), replicas_of(*replicas)) for at in range(count))
    return PlanRequest(BROKERS, partitions, frozenset(broker.id for broker in BROKERS))


def children():
    """Our child processes that are planning."""
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", solving.__name__], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


@pytest.fixture(params=["thread", "process"])
def place(request, monkeypatch):
    monkeypatch.setattr(solving, "LARGE", 1 if request.param == "process" else 10**9)


@pytest.mark.usefixtures("place")
class TestEitherWay:
    async def test_the_very_plan(self):
        """Every field equals the planner's own result, hash included."""
        made, expected = await run_planner(request()), plan(request())
        assert made == expected
        assert made.hash == expected.hash

    async def test_refused(self):
        with pytest.raises(Refused) as refused:
            await run_planner(request(replicas=(1, 1)))
        assert refused.value.reason == "DuplicateReplica"
        assert "[1, 1]" in refused.value.message


class TestProcess:
    """It belongs to this operator alone, and leaves nothing behind."""

    async def test_plans_by_load_however_small(self, monkeypatch):
        """The search keeps the interpreter's lock, and so does the compiler of its loops."""
        monkeypatch.setattr(solving, "plan", lambda _: pytest.fail("planned in this process"))
        by_load = Goals(load=(LoadGoal(LoadResource.DISK),))
        with pytest.raises(Refused, match=r"goals\.load cannot be combined"):  # said before anything is compiled
            await run_planner(replace(request(), goals=by_load, strategy=Strategy.GENERATE))

    @pytest.fixture
    async def long(self):
        """A plan that takes a while, and its process."""
        task = asyncio.create_task(run_planner(request(60_000)))
        (pid,) = await asyncio.to_thread(wait_until, "it is planning", children)
        yield task, pid
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def test_ends_when_nobody_wants_the_plan(self, long):
        """A rebalance that is deleted or replaced, or a SIGTERM: the computation stops."""
        task, pid = long
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert pid not in children()

    async def test_killed(self, long):
        """Out of memory: reported and retried."""
        task, pid = long
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Transient, match="60000 partitions ended with signal 9") as failed:
            await task
        assert failed.value.reason == "PlanningFailed"
