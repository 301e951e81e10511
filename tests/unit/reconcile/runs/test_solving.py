"""Whether a plan is made in a thread or in a process, the limits of the process, and the result."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from e2e.bench.waiting import wait_until

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.model.goals import Balance, LoadGoal, LoadResource, Strategy
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition, replicas_of
from kafka_rebalance.planning.log_dirs import BrokerDirs, DirReplica
from kafka_rebalance.planning.planner import plan
from kafka_rebalance.planning.problem.request import Goals, PartitionInput, PlanRequest
from kafka_rebalance.reconcile.runs import solving
from kafka_rebalance.reconcile.runs.log_dir_search import DirQuestion, answers_to
from kafka_rebalance.reconcile.runs.plan_memory import PlanMemory
from kafka_rebalance.reconcile.runs.plan_transport import write_answer
from kafka_rebalance.reconcile.runs.solving import draft_memory, run_log_dirs, run_planner
from kafka_rebalance.reconcile.state.inline_thread import in_thread
from kafka_rebalance.reconcile.state.namespace_turns import AllInlineTurns

BROKERS = tuple(Broker(BrokerId(number), None) for number in range(1, 5))


def request(count=8, replicas=(1, 2)):
    partitions = tuple(PartitionInput(TopicPartition("t", at), replicas_of(*replicas)) for at in range(count))
    return PlanRequest(BROKERS, partitions, frozenset(broker.id for broker in BROKERS))


def on(count, asked):
    """The request with this number of brokers."""
    brokers = tuple(Broker(BrokerId(number)) for number in range(1, count + 1))
    return replace(asked, brokers=brokers, targets=frozenset(broker.id for broker in brokers))


def children():
    """Our child processes that are planning."""
    found = subprocess.run(
        ["pgrep", "-P", str(os.getpid()), "-f", solving.__name__], capture_output=True, text=True, check=False
    )
    return [int(pid) for pid in found.stdout.split()]


async def once(ask, question, turns):
    """As in a draft that needs nothing else."""
    memory = draft_memory("a")
    try:
        return await ask(question, turns, memory)
    finally:
        memory.release()


planned_once, searched_once = partial(once, run_planner), partial(once, run_log_dirs)


@pytest.fixture(params=["thread", "process"])
def place(request, monkeypatch):
    monkeypatch.setattr(solving, "LARGE", 1 if request.param == "process" else 10**9)


@pytest.mark.usefixtures("place")
class TestEitherWay:
    async def test_the_very_plan(self):
        """Every field equals the planner's own result, hash included."""
        made, expected = await planned_once(request(), None), plan(request())
        assert made == expected
        assert made.hash == expected.hash

    async def test_refused(self):
        with pytest.raises(Refused) as refused:
            await planned_once(request(replicas=(1, 1)), None)
        assert refused.value.reason == "DuplicateReplica"
        assert "[1, 1]" in refused.value.message


class TestProcess:
    """The process is a child of this operator, and ends with its plan."""

    async def test_plans_by_load_however_small(self, monkeypatch):
        """The search keeps the interpreter's lock, and so does the compiler of its loops."""
        monkeypatch.setattr(solving, "plan", lambda _: pytest.fail("planned in this process"))
        by_load = Goals(load=(LoadGoal(LoadResource.DISK),))
        with pytest.raises(Refused, match=r"goals\.load cannot be combined"):  # said before anything is compiled
            await planned_once(replace(request(), goals=by_load, strategy=Strategy.GENERATE), None)

    @pytest.mark.parametrize(
        "hard",
        [
            pytest.param(on(100, request()), id="many brokers"),
            pytest.param(on(60, request(replicas=range(1, 50))), id="long lists"),
            pytest.param(on(60, replace(request(), replication_factor=50)), id="a high replication factor"),
            pytest.param(on(50, replace(request(400), goals=Goals(balance=Balance.BOTH))), id="balance by topic"),
        ],
    )
    async def test_plans_few_partitions_that_are_hard(self, hard, monkeypatch):
        """A few hundred partitions with a hundred replicas each take minutes.

        The threads of the event loop serve all clusters.
        """
        monkeypatch.setattr(solving, "plan", lambda _: pytest.fail("planned in this process"))
        await planned_once(hard, None)

    @pytest.mark.parametrize(
        ("given", "place_of_it"),
        [
            pytest.param(on(50, request(9_999)), "thread", id="just below"),
            pytest.param(on(51, request(9_999)), "process", id="replicas times brokers"),
            pytest.param(on(51, replace(request(9_999, (1,)), replication_factor=2)), "process", id="replicas to add"),
        ],
    )
    async def test_plans_what_nothing_ends_in_a_thread(self, given, place_of_it, monkeypatch):
        """A plan for a few hundred brokers, of which a few hold everything, takes a minute or more in the solver.

        Two of them would hold both threads, in which the topics of all KafkaConnections are matched.
        """
        places = []

        async def asked(*_):
            places.append("process")
            return write_answer(plan(request()), request())

        monkeypatch.setattr(solving, "plan", lambda _: places.append("thread"))
        monkeypatch.setattr(solving, "_asked", asked)
        monkeypatch.setattr(solving, "read_answer", lambda *_: None)
        await planned_once(given, None)
        assert places == [place_of_it]

    async def test_a_namespace_has_one_small_plan_at_a_time(self, monkeypatch):
        """Else those of one namespace would hold both threads, in which the topics of others are matched."""
        planning, free = [], threading.Event()
        monkeypatch.setattr(solving, "plan", lambda _: planning.append("a plan") or free.wait(60))
        monkeypatch.setattr(solving, "answers_to", lambda _: planning.append("log dirs") or free.wait(60))
        async with asyncio.TaskGroup() as waiting:
            for _ in range(2):
                waiting.create_task(planned_once(request(), None))
                waiting.create_task(searched_once(in_one_log_dir(10), None))
            try:
                async with asyncio.timeout(30):
                    while not planning:  # noqa: ASYNC110 - nothing tells it
                        await asyncio.sleep(0.001)
                    assert await in_thread(lambda: 7, None, "b") == 7
                assert planning == ["a plan"]
            finally:
                free.set()
        assert sorted(planning) == ["a plan", "a plan", "log dirs", "log dirs"]

    @pytest.mark.parametrize(
        "claimed",
        [
            pytest.param(request(200), id="partitions"),
            pytest.param(on(20, request()), id="brokers"),
            pytest.param(on(20, replace(request(20), goals=Goals(balance=Balance.BOTH))), id="balance by topic"),
        ],
    )
    async def test_plans_more_for_servers_that_are_not_trusted(self, claimed, monkeypatch):
        """They can claim what is hard to plan, and the solver holds the interpreter's lock."""
        await planned_once(claimed, AllInlineTurns().of("a"))
        assert await planned_once(claimed, None) == plan(claimed)
        monkeypatch.setattr(solving, "plan", lambda _: pytest.fail("planned in this process"))
        await planned_once(claimed, AllInlineTurns().of("a"))

    async def test_small_plans_for_them_use_no_thread_of_the_event_loop(self, monkeypatch):
        """A namespace may have many clusters, and each edit is a new plan: the threads serve all clusters."""
        turns, threads, ended, free = AllInlineTurns(), set(), [], threading.Event()

        def planned(asked):
            threads.add(threading.current_thread().name)
            assert free.wait(60)
            return plan(asked)

        async def small(namespace):
            await planned_once(request(), turns.of(namespace))
            ended.append(namespace)

        monkeypatch.setattr(solving, "plan", planned)
        async with asyncio.TaskGroup() as waiting:
            for namespace in ("a", "a", "b"):
                waiting.create_task(small(namespace))
            await asyncio.to_thread(wait_until, "it plans", lambda: threads)
            free.set()
        assert threads == {"inline_0"}
        assert ended == ["a", "b", "a"]

    async def test_has_limited_memory(self):
        """A plan for 5,000 claimed brokers takes 2 GB. It must not exhaust the memory of the operator."""
        with pytest.raises(Transient, match="short of memory") as failed:
            await planned_once(on(5_000, request(9_999, range(1, 4))), AllInlineTurns().of("a"))
        assert failed.value.reason == "PlanningFailed"
        assert "9999 partitions on 5000 brokers" in failed.value.message
        assert "the limit for an inline connection is 265 MiB" in failed.value.message

    async def test_is_not_limited_for_trusted_servers(self, monkeypatch):
        """A KafkaConnection may lead to a cluster of any size."""
        monkeypatch.setattr(solving, "_MEMORY_BYTES", 1)
        monkeypatch.setattr(solving, "_PARTITION_BYTES", 1)
        assert (await planned_once(on(1_000, request(1_000)), None)).partitions

    async def test_takes_no_more_than_the_container_has_left(self, monkeypatch):
        """A spec may ask for 300 replicas of each partition. The kernel may end the operator if memory runs out."""
        monkeypatch.setattr(solving, "_memory", PlanMemory(lambda: 1 << 20, 1 << 20))
        with pytest.raises(Transient, match=r"short of memory .the limit of what the container has left is 1 MiB"):
            await planned_once(on(300, replace(request(20_000), replication_factor=100)), None)

    async def test_has_memory_to_compile(self, monkeypatch):
        """Without a cache each process compiles the loops of a plan by load, which takes 294 MiB, for any cluster."""
        limits = []

        async def asked(_kind, _question, _what, grant, _why):
            limits.append(grant.limit >> 20)
            return write_answer(plan(request()), request())

        monkeypatch.setattr(solving, "_asked", asked)
        by_load = replace(request(), goals=Goals(load=(LoadGoal(LoadResource.DISK),)))
        await planned_once(by_load, AllInlineTurns().of("a"))
        assert limits == [384]

    async def test_has_limited_time(self, monkeypatch):
        """The plans of other inline connections wait for it."""
        monkeypatch.setattr(solving, "_LONGEST_SECONDS", 0.01)
        with pytest.raises(Transient, match="took more than 0 s, the limit for an inline connection") as failed:
            await planned_once(request(60_000), AllInlineTurns().of("a"))
        assert failed.value.reason == "PlanningFailed"
        assert children() == []

    async def test_has_limited_time_for_trusted_servers_too(self, monkeypatch):
        """A spec may ask for 100 replicas of each partition: its process would use a CPU for hours.

        The message says what to change. An edit of the spec does not wait for the next attempt, an hour later.
        """
        monkeypatch.setattr(solving, "_LONGEST_TRUSTED_SECONDS", 0.01)
        with pytest.raises(Transient, match="took more than 0 s, the limit for a KafkaConnection") as failed:
            await planned_once(request(60_000), None)
        assert failed.value.message.endswith("narrow spec.topics, or lower spec.replicationFactor")
        assert (failed.value.reason, failed.value.retry_after) == ("PlanningFailed", 3600)
        assert children() == []

    async def test_waits_for_its_turn(self):
        """Plans of many inline connections do not fill the container together."""
        turns, ended = AllInlineTurns(), []

        async def planned(namespace):
            await planned_once(request(10_000), turns.of(namespace))
            ended.append(namespace)

        async with asyncio.TaskGroup() as waiting, turns.of("first").process():
            for namespace in ("a", "a", "b"):
                waiting.create_task(planned(namespace))
            async with asyncio.timeout(60):
                await planned_once(request(), turns.of("a"))  # an easy plan does not wait
            assert children() == []
        assert ended == ["a", "b", "a"]  # a namespace delays another one by one plan

    @pytest.fixture
    async def long(self):
        """A plan that takes a while, and its process."""
        task = asyncio.create_task(planned_once(request(60_000), None))
        (pid,) = await asyncio.to_thread(wait_until, "it is planning", children)
        yield task, pid
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def test_what_it_uses_counts_once(self, monkeypatch):
        """It is looked up by its pid for as long as it runs; then another process may have this number."""
        memory = PlanMemory(lambda: None, 1)
        monkeypatch.setattr(solving, "_memory", memory)
        draft = draft_memory("a")
        task = asyncio.create_task(run_planner(request(60_000), None, draft))
        (pid,) = await asyncio.to_thread(wait_until, "it is planning", children)
        (grant,) = memory._grants
        async with asyncio.timeout(20):
            while grant.pid is None:  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.001)
        assert grant.pid == pid
        task.cancel()
        await asyncio.wait({task})
        assert grant.pid is None
        draft.release()
        assert memory._grants == []

    async def test_ends_when_nobody_wants_the_plan(self, long):
        """A rebalance that is deleted or replaced, or a SIGTERM: the computation stops."""
        task, pid = long
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()
        assert pid not in children()

    def test_ends_with_an_operator_that_is_killed(self):
        """Otherwise it would go on for up to half an hour, beside that of the next operator."""
        low = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        command = repr((sys.executable, "-P", "-m", solving.__name__, "0", "plan"))
        operator = f"import subprocess\nchild = subprocess.Popen({command})\nprint(child.pid, flush=True)\nchild.wait()"
        # The test holds the end of its input that the operator would hold: only the kernel can tell it.
        with subprocess.Popen(
            (sys.executable, "-c", operator), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as parent:
            pid = int(parent.stdout.readline())
            try:
                wait_until("it waits for the request", lambda: os.getpriority(os.PRIO_PROCESS, pid) == low, timeout=60)
            finally:
                parent.kill()
            wait_until("it has ended", lambda: not Path(f"/proc/{pid}").exists(), timeout=60)

    def test_has_a_lower_priority_than_the_operator(self):
        """A plan may take minutes, in which the operator renews its lease and works for other clusters."""
        low = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        command = (sys.executable, "-P", "-m", solving.__name__, "0", "plan")
        with subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True) as process:
            try:  # it waits for the request
                wait_until("it has", lambda: os.getpriority(os.PRIO_PROCESS, process.pid) == low, timeout=60)
            finally:
                process.kill()

    async def test_killed(self, long):
        """Out of memory: reported and retried."""
        task, pid = long
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(Transient, match="60000 partitions on 4 brokers ended with signal 9") as failed:
            await task
        assert failed.value.reason == "PlanningFailed"


def in_one_log_dir(count, room=None):
    """Of each of two brokers, one of whose log dirs is empty."""
    return [
        DirQuestion(
            BrokerDirs(
                BrokerId(broker),
                {"/a": None, "/b": None},
                frozenset(),
                tuple(DirReplica(TopicPartition("t", at), at + 1, "/a", at % 2 == 1) for at in range(count)),
            ),
            10,
            room or {},
        )
        for broker in (1, 2)
    ]


class TestLogDirs:
    """The search between log dirs takes hours for 50,000 replicas in one of them."""

    @pytest.fixture
    def _elsewhere(self, monkeypatch):
        monkeypatch.setattr(solving, "answers_to", lambda _: pytest.fail("searched in this process"))

    @pytest.mark.usefixtures("_elsewhere")
    @pytest.mark.parametrize("turns", [None, AllInlineTurns().of("a")])
    async def test_the_very_moves(self, turns):
        many = in_one_log_dir(1_500, room={"/b": 1})
        found = await searched_once(many, turns)
        assert found == answers_to(many)
        assert [answer.full for answer in found] == ["/b", "/b"]
        assert found[0].moves

    async def test_few_replicas(self, monkeypatch):
        """Without the half second in which a process starts."""
        monkeypatch.setattr(solving, "_asked", lambda *_: pytest.fail("in a process"))
        few = in_one_log_dir(10)
        assert await searched_once(few, AllInlineTurns().of("a")) == answers_to(few)
        assert await searched_once([], None) == []

    async def test_has_limited_time(self, monkeypatch):
        monkeypatch.setattr(solving, "_LONGEST_SECONDS", 0.01)
        with pytest.raises(Transient, match="planning the log dirs of 40000 replicas took more than 0 s") as failed:
            await searched_once(in_one_log_dir(20_000), AllInlineTurns().of("a"))
        assert failed.value.reason == "PlanningFailed"
        assert children() == []

    async def test_has_limited_memory(self, monkeypatch):
        monkeypatch.setattr(solving, "_MEMORY_BYTES", -50 * 2**20)
        with pytest.raises(Transient, match=r"planning the log dirs of 4000 replicas ended .* short of memory"):
            await searched_once(in_one_log_dir(2_000), AllInlineTurns().of("a"))
