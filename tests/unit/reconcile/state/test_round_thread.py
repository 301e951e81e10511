"""Which threads compute for a round, and whom that delays."""

import asyncio
import contextvars
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import StoppedClock

from kafka_rebalance.heartbeat import heard_by
from kafka_rebalance.reconcile.observe import observer
from kafka_rebalance.reconcile.state import inline_thread
from kafka_rebalance.reconcile.state.namespace_turns import AllInlineTurns
from kafka_rebalance.reconcile.state.round_thread import computed, off_the_loop, round_of

THREADS = 2


@pytest.fixture
async def inline():
    """The turns of all inline connections; the event loop has few threads."""
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(THREADS))
    return AllInlineTurns()


async def computed_for(turns, work):
    with round_of(turns.round if turns else None):
        return await off_the_loop(work)


@pytest.fixture
async def busy(inline):
    """Set it to end the computation that occupies the thread."""
    free = threading.Event()
    before = asyncio.create_task(computed_for(inline.of("first"), lambda: free.wait(60)))
    await asyncio.sleep(0)
    yield free
    free.set()
    assert await before


async def test_rounds_of_a_kafka_connection_go_on(inline, monkeypatch):
    """Servers of a namespace may claim more clusters than there are threads, each of which takes seconds to compare."""
    free, compare = threading.Event(), observer.compared

    def blocked(found, before, kept):
        if any(tp.topic == "claimed" for tp in found):
            free.wait(60)
        return compare(found, before, kept)

    monkeypatch.setattr(observer, "compared", blocked)
    monkeypatch.setattr(observer, "_MANY", 1)
    claimed = [
        OperatorInMemory(KafkaInMemory([1, 2, 3], claimed=[[1, 2]]), turns=inline.of("a")) for _ in range(THREADS + 1)
    ]
    other = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1, 2]] * 4))
    for operator, topic in ((other, "t"), *((operator, "claimed") for operator in claimed)):
        operator.assign((topic, 0, [3, 2]))
    async with asyncio.TaskGroup() as waiting:
        for operator in claimed:
            waiting.create_task(operator.until("Succeeded"))
        try:
            async with asyncio.timeout(30):
                await other.until("Succeeded")
            assert not any(operator.kafka.altered for operator in claimed)
        finally:
            free.set()
    assert all(operator.kafka.lists("claimed") == [[3, 2]] for operator in claimed)


async def test_small_clusters_are_read_without_waiting(inline, busy):
    """Every round looks through all partitions several times."""
    kafka = KafkaInMemory([1, 2], t=[[1, 2]])
    read = observer.Observer(kafka, StoppedClock())
    with round_of(inline.of("a").round):
        async with asyncio.timeout(30):
            look = await read.look(await read.everything(), (), kafka.info)
    assert len(look.observation.cluster.partitions) == 1


@pytest.mark.parametrize("many", [True, False])
async def test_only_long_work_is_done_in_a_thread(many):
    """A thread costs little, but more than the work for a few partitions."""
    thread = await computed(threading.current_thread, many=many)
    assert (thread is threading.main_thread()) is not many


async def test_namespaces_take_turns(inline, busy):
    """A namespace with many clusters delays a round of another namespace by only one computation."""
    done = []
    async with asyncio.TaskGroup() as waiting:
        for namespace in ("a", "a", "a", "b", "first"):
            waiting.create_task(computed_for(inline.of(namespace), lambda name=namespace: done.append(name)))
        await asyncio.sleep(0)
        busy.set()
    assert done == ["a", "b", "first", "a", "a"]


async def test_the_threads_of_matching_are_others(inline, busy):
    """A match may take 5 s."""
    async with asyncio.timeout(30):
        assert await inline_thread.in_thread(lambda: 7, inline.of("first").thread) == 7


async def test_waiting_for_the_thread_is_a_beat(inline, busy, monkeypatch):
    """The engine does not hang while others compute."""
    monkeypatch.setattr(inline_thread, "_BEAT_SECONDS", 0.01)
    beats = []
    with heard_by(lambda: beats.append(1) or (busy.set() if len(beats) == 3 else None)):
        assert await computed_for(inline.of("a"), lambda: 7) == 7
    assert len(beats) >= 3


@pytest.mark.parametrize("namespace", [None, "a"])
async def test_what_is_computed_has_the_context_of_the_round(inline, namespace):
    """As log lines need it. A failure is raised to the caller."""
    cluster = contextvars.ContextVar("cluster")
    cluster.set("c")
    turns = inline.of(namespace) if namespace else None
    assert await computed_for(turns, cluster.get) == "c"
    with pytest.raises(ZeroDivisionError):
        await computed_for(turns, lambda: 1 // 0)
