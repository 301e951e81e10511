"""The partitions that specs select: matched beside the rounds, and once for each reading."""

import asyncio
import threading

import pytest

from kafka_rebalance.api import topic_patterns
from kafka_rebalance.heartbeat import heard_by
from kafka_rebalance.model.topology import PartitionState, TopicPartition
from kafka_rebalance.reconcile.observe import selected_partitions
from kafka_rebalance.reconcile.observe.selected_partitions import SelectedPartitions
from kafka_rebalance.reconcile.state import late_matches
from kafka_rebalance.reconcile.state.namespace_turns import AllInlineTurns
from kafka_rebalance.reconcile.state.rebalance import Rebalance

T, U = TopicPartition("t", 0), TopicPartition("u", 0)
EVERYTHING = {tp: PartitionState(tp, "id", (1,), frozenset({1}), None) for tp in (T, U)}


def body(uid, *topics, namespace="kafka"):
    metadata = {"name": uid, "namespace": namespace, "uid": uid}
    return {"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "k:1"}, "topics": {"include": list(topics)}}}


async def test_each_is_a_beat(monkeypatch):
    """Many that take seconds each are no round that hangs, for which the operator would be restarted."""
    selected, beats, loops = SelectedPartitions(None), [], []
    select = selected_partitions.select

    def noted(*arguments):
        try:
            loops.append(asyncio.get_running_loop())
        except RuntimeError:
            loops.append(None)
        return select(*arguments)

    monkeypatch.setattr(selected_partitions, "select", noted)
    rebalances = [Rebalance.of(body("a", "t")), Rebalance.of(body("b", "u")), Rebalance.of(body("c", "t"))]
    with heard_by(lambda: beats.append(1)):
        await selected.read(rebalances, EVERYTHING)
        await selected.read(rebalances, EVERYTHING)
    assert selected.of(rebalances, EVERYTHING) == {"a": {T}, "b": {U}, "c": {T}}
    assert (len(beats), loops) == (2, [None, None])


async def test_inline_connections_share_one_thread(monkeypatch):
    """What they match occupies none of the threads that serve all clusters."""
    names, select = [], selected_partitions.select

    def noted(*arguments):
        names.append(threading.current_thread().name)
        return select(*arguments)

    monkeypatch.setattr(selected_partitions, "select", noted)
    turn = AllInlineTurns().of("kafka").thread
    for _ in range(3):
        await SelectedPartitions(turn).read([Rebalance.of(body("a", "t"))], EVERYTHING)
    await SelectedPartitions(None).read([Rebalance.of(body("a", "t"))], EVERYTHING)
    assert names[:3] == ["inline_0"] * 3
    assert not names[3].startswith("inline")


async def test_one_that_was_edited_meanwhile():
    """It counts as selecting everything for this round: nothing is matched in the event loop."""
    selected = SelectedPartitions(None)
    one, other = Rebalance.of(body("a", "t")), Rebalance.of(body("b", "u"))
    await selected.read([one, other], EVERYTHING)
    one.see(body("a", "u", "v"))
    assert selected.of([one, other], EVERYTHING) == {"a": {T, U}, "b": {U}}
    await selected.read([one, other], EVERYTHING)
    assert selected.of([one, other], EVERYTHING) == {"a": {U}, "b": {U}}


@pytest.fixture
def matched(monkeypatch):
    """The topics of the specs that were matched."""
    found, select = [], selected_partitions.select

    def noted(spec, partitions):
        found.append(spec.topics.include[0])
        return select(spec, partitions)

    monkeypatch.setattr(selected_partitions, "select", noted)
    return found


@pytest.mark.parametrize("many", [1, 10_000], ids=["compared in a thread", "few"])
async def test_matched_again_for_other_partitions_only(matched, monkeypatch, many):
    """Each reading of the cluster has new states, mostly of the same partitions."""
    monkeypatch.setattr(selected_partitions, "_MANY", many)
    selected, rebalances = SelectedPartitions(None), [Rebalance.of(body("a", "t"))]
    fewer = {T: EVERYTHING[T]}
    other = {T: EVERYTHING[T], TopicPartition("v", 0): EVERYTHING[U]}
    for reading in (EVERYTHING, dict(EVERYTHING), fewer, dict(EVERYTHING), other):
        await selected.read(rebalances, reading)
    assert len(matched) == 4
    assert selected.of(rebalances, EVERYTHING) == {"a": {T}}


@pytest.fixture
def held(matched, monkeypatch):
    """The topic "w" is matched when this is set."""
    free, select = threading.Event(), selected_partitions.select

    def waits(spec, partitions):
        found = select(spec, partitions)
        if spec.topics.include[0] == "w":
            free.wait(60)
        return found

    monkeypatch.setattr(selected_partitions, "select", waits)
    monkeypatch.setattr(late_matches, "_ROUND_SECONDS", 0.01)
    yield free
    free.set()


async def test_rounds_wait_for_a_few_only(matched, held):
    """A slow one holds up its namespace only. What is not matched yet counts as selecting everything."""
    selected, slow = SelectedPartitions(None), [Rebalance.of(body(name, name)) for name in "wxyz"]
    rebalances = [*slow, Rebalance.of(body("u", "u", namespace="other"))]
    everything = frozenset(EVERYTHING)

    async def read_until(*expected):
        async with asyncio.timeout(60):
            while [selected.of(rebalances, EVERYTHING)[uid] for uid in "wxyzu"] != list(expected):
                await selected.read(rebalances, EVERYTHING)

    await read_until(*[everything] * 4, {U})
    assert sorted(matched) == ["u", "w"]
    held.set()
    await read_until(*[frozenset()] * 4, {U})
    assert sorted(matched) == ["u", "w", "x", "y", "z"]


async def test_one_that_ends_between_two_rounds(matched, held, monkeypatch):
    """It is taken in, and not matched again."""
    selected, rebalances = SelectedPartitions(None), [Rebalance.of(body("w", "w"))]
    monkeypatch.setattr(late_matches, "_ROUND_SECONDS", 0.0)
    await selected.read(rebalances, EVERYTHING)
    ((_, task),) = selected._matches._matches.values()
    held.set()
    await asyncio.wait({task})
    await selected.read(rebalances, EVERYTHING)
    assert selected.of(rebalances, EVERYTHING) == {"w": frozenset()}
    assert matched == ["w"]


async def test_the_end(held):
    """What is being matched is not awaited."""
    selected = SelectedPartitions(None)
    await selected.read([Rebalance.of(body("w", "w"))], EVERYTHING)
    ((_, task),) = selected._matches._matches.values()
    selected.end()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_one_that_takes_long_selects_nothing(monkeypatch):
    """Its plan is refused; the others go on."""
    monkeypatch.setattr(topic_patterns, "_too_slow", type(topic_patterns._too_slow)())
    monkeypatch.setattr(topic_patterns, "_MOST_SECONDS", -1.0)
    selected, rebalances = SelectedPartitions(None), [Rebalance.of(body("a", "t"))]
    await selected.read(rebalances, EVERYTHING)
    assert selected.of(rebalances, EVERYTHING) == {"a": frozenset()}
