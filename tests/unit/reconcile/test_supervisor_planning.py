"""Whose plans have limits and wait for their turn: those of clusters that inline connections lead to."""

import asyncio
import threading
from collections import defaultdict
from contextlib import nullcontext

import pytest
from tests.fakes.shared_clusters import REF, Cluster, SharedClusters

from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.api.v1alpha1 import CONNECTIONS
from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.planning.log_dirs import even_log_dirs
from kafka_rebalance.planning.planner import plan
from kafka_rebalance.reconcile.runs import log_dir_search, plan_maker, plan_request, solving
from kafka_rebalance.reconcile.state.namespace_turns import NamespaceTurns


def with_own_servers(names):
    """Namespaces with these names, each with a KafkaRebalance of a cluster of its own."""
    clusters = SharedClusters()
    for name in names:
        clusters.servers[name] = Cluster([1, 2], t=[[1], [1]])
        clusters.servers[name].cluster_id = name
        clusters.create(name, server=name)
    return clusters


@pytest.mark.parametrize("trusted", [False, True])
async def test_servers_of_a_kafka_connection_are_trusted(monkeypatch, trusted):
    """Only administrators create one."""
    make_plan, turns = plan_maker.make_plan, []

    async def observed(*arguments):
        turns.append(arguments[-2])
        return await make_plan(*arguments)

    monkeypatch.setattr(plan_maker, "make_plan", observed)
    clusters = SharedClusters()
    if trusted:
        clusters.connection()
        clusters.create("r", kafka=REF, brokers={"decommission": [1]})
    else:
        clusters.create("r", brokers={"decommission": [1]})
    clusters.see()
    await clusters.until(lambda: clusters.state("r") == "Succeeded")
    await clusters.supervisors[0].stop()
    assert turns
    assert all((turn is None) is trusted for turn in turns)


async def test_a_plan_of_another_cluster_is_dropped(world, monkeypatch):
    """A rebalance lost its permission while it was planned, and its connection leads to another cluster by now."""
    end, asked = asyncio.Event(), []

    async def planned(request, turns, _memory):
        asked.append(request)
        await end.wait()
        return plan(request)

    monkeypatch.setattr(plan_request, "run_planner", planned)
    world.servers["new"] = new = Cluster([1, 2, 3, 4], orders=[[2, 3, 4]] * 4)
    new.cluster_id = "new"
    world.connection(names=["a"])
    world.create("a", kafka=REF, brokers={"decommission": [1]})
    world.see("a")
    await world.until(lambda: asked)
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"from": "Same"})
    await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
    rebalance = world.supervisor.connection_of("u-2").rebalances["u-2"]
    await world.until(lambda: rebalance.memory.planning is None)
    end.set()
    world.gone(CONNECTIONS, "k", "prod")
    world.supervisor._engines.get("c").engine.wake()
    await world.until(lambda: world.supervisor._engines.get("c") is None)
    world.connection(server="new", names=["a"])
    await world.until(lambda: world.state("a") == "Succeeded")
    assert len(asked) == 2


async def test_all_inline_connections_wait_for_one_another(monkeypatch):
    """Any number of servers may each claim a cluster that is hard to plan. Each namespace has a turn of its own."""
    asked, planning, together, namespaces = [], [], [], set()
    all_ask, of = asyncio.Event(), NamespaceTurns.of

    def turn_of(turns, namespace):
        namespaces.add(namespace)
        return of(turns, namespace)

    async def planned(request, turns, _memory):
        asked.append(request)
        if len(asked) == 3:
            all_ask.set()
        async with turns.process() if turns else nullcontext():
            planning.append(request)
            await all_ask.wait()
            for _ in range(50):
                await asyncio.sleep(0)
            together.append(len(planning))
            planning.remove(request)
            return plan(request)

    monkeypatch.setattr(NamespaceTurns, "of", turn_of)
    monkeypatch.setattr(plan_request, "run_planner", planned)
    clusters = with_own_servers("abc")
    clusters.see()
    await clusters.until(lambda: len(together) == 3)
    await clusters.supervisors[0].stop()
    assert together == [1, 1, 1]
    assert namespaces == {"a", "b", "c"}


async def test_many_replicas_in_log_dirs_do_not_occupy_the_threads(monkeypatch):
    """Servers can claim 50,000 replicas in a log dir, for which this search takes hours."""

    def evened(*arguments):
        pytest.fail("searched in this process")
        return even_log_dirs(*arguments)

    monkeypatch.setattr(log_dir_search, "even_log_dirs", evened)
    monkeypatch.setattr(solving, "_MANY_IN_DIRS_UNTRUSTED", 1)
    clusters = SharedClusters()
    clusters.real.dirs = dict.fromkeys(map(BrokerId, (1, 2, 3, 4)), ("/a", "/b"))
    clusters.create("r", strategy="LogDirs", goals={"logDirs": {}})
    clusters.see()
    await clusters.until(lambda: clusters.state("r") == "Succeeded")
    await clusters.supervisors[0].stop()
    assert set(clusters.real.bytes_in(1)) == {"/a", "/b"}


async def test_all_inline_connections_match_topics_and_compute_in_turn(monkeypatch):
    """There is one thread for all of them for each of both, and a namespace may have many slow connections."""
    turns, of = defaultdict(list), NamespaceTurns.of

    def turn_of(queue, namespace):
        turns[queue].append(namespace)
        return of(queue, namespace)

    monkeypatch.setattr(NamespaceTurns, "of", turn_of)
    clusters = with_own_servers("ab")
    clusters.connection()
    clusters.create("c", kafka=REF)
    clusters.see()
    await clusters.until(lambda: all(clusters.state(name) == "Succeeded" for name in "abc"))
    await clusters.supervisors[0].stop()
    shared = [namespaces for namespaces in turns.values() if len(set(namespaces)) > 1]  # else of a cluster
    assert [set(namespaces) for namespaces in shared] == [{"a", "b"}] * 2
    assert min(map(len, shared)) >= 6  # the selected topics, and the expressions that match none


async def test_all_topics_of_inline_connections_are_matched_in_their_thread(monkeypatch):
    """Those that are pinned too, and those of brokers that are to be empty at the end."""
    threads, matches = set(), TopicFilter.matches

    def noted(selected, topic):
        threads.add(threading.current_thread().name)
        return matches(selected, topic)

    monkeypatch.setattr(TopicFilter, "matches", noted)
    clusters = SharedClusters()
    clusters.create("r", brokers={"decommission": [1]}, topics={"pinned": ["u"]})
    clusters.see()
    await clusters.until(lambda: clusters.state("r") == "Succeeded")
    await clusters.supervisors[0].stop()
    assert threads == {"inline_0"}
