"""Refused resources of a namespace, whose server may hang when it is asked whether their open runs began there."""

import asyncio

from tests.fakes.shared_clusters import REF, Cluster

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reconcile import supervisor as supervising


class Hanging(Cluster):
    """Does not answer calls about topics while ``hangs`` is set."""

    cluster_id = "y"
    hangs = False
    unanswered = 0

    async def topic_ids(self, topics=None):
        if not self.hangs:
            return await super().topic_ids(topics)
        self.unanswered += 1
        return await asyncio.Event().wait()


async def test_the_plans_of_others_do_not_wait_for_it(world):
    """After a restart they wait until the run in their own cluster has been looked at, and not those at the server."""
    topics = {"t1": [[1, 2, 3]], "t2": [[1, 2, 3]]}
    world.servers["other"] = server = Hanging([1, 2, 3, 4], **topics)
    world.connection(names=["a", "own"])
    manual = {"approval": {"policy": "Manual"}}
    world.create("a", kafka=REF, name="z", topics={"include": ["orders"]}, **manual)
    world.create("a", "other", "keeper", suspend=True, topics={"include": ["nothing"]})
    for topic in topics:
        world.create("a", "other", topic, topics={"include": [topic]}, brokers={"decommission": [1]}, **manual)
    world.see()
    await world.until(lambda: all(world.state("a", name) == "AwaitingApproval" for name in ("z", *topics)))
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["own"]})
    for topic in topics:
        world.edit(REBALANCES, "a", topic, kafka=REF)
    await world.until(lambda: world.state("a", "z") == "ConnectionNotPermitted")
    world.create("own", kafka=REF)
    await world.supervisor.stop()
    world.begin()
    # The server is connected to first, so its runs are looked at first.
    bodies = dict(world.kube.resources)
    world.supervisor.seen(REBALANCES, bodies.pop((REBALANCES, "a", "keeper")), deleted=False)
    await world.until(lambda: world.supervisor._engines.get("y"))
    server.hangs = True
    for (plural, _, _), body in sorted(bodies.items(), key=lambda row: (row[0][0] != CONNECTIONS, row[0])):
        world.supervisor.seen(plural, body, deleted=False)
    await world.until(lambda: world.state("own") == "Succeeded")
    assert server.unanswered


class Silent:
    """A server that does not answer."""

    async def describe_cluster(self):
        await asyncio.Event().wait()

    async def close(self):
        pass


async def test_plans_wait_for_no_throttle_resource_of_another_owner(world):
    """After a restart, open runs of a refused namespace are placed although a server that it names hangs."""
    world.connection(names=["a", "own"])
    world.create("a", kafka=REF, brokers={"decommission": [1]}, approval={"policy": "Manual"})
    world.see()
    await world.until(lambda: world.state("a") == "AwaitingApproval")
    world.edit(CONNECTIONS, "k", "prod", allowedNamespaces={"names": ["own"]})
    await world.until(lambda: world.state("a") == "ConnectionNotPermitted")
    world.servers["silent"] = Silent()
    world.create("a", "silent", "t", REASSIGNMENT_THROTTLES, leaderRate="1", followerRate="1")
    world.create("own", kafka=REF)
    await world.supervisor.stop()
    world.begin()
    await world.supervisor.know(())
    async with asyncio.timeout(supervising._LIMITS_SECONDS / 2):
        await world.until(lambda: world.state("own") == "Succeeded")


async def test_edits_lead_to_no_more_questions_about_a_run(world, monkeypatch):
    """The owner's brokers are asked about all its topics. They are asked again some seconds later."""
    world.servers["evil"] = evil = Cluster([1, 2, 3, 4], **{"orders": [[1]], "made-up": [[1]]})
    evil.slow = set(evil.brokers)
    world.create("evil", "evil", brokers={"include": [2, 3, 4]}, throttle={"unlimited": True})
    world.see("evil")
    await world.until(lambda: evil.flying)
    world.connection(names=["own"])
    await world.until(lambda: world.state("evil") == "ClusterOwnedElsewhere")
    asked, ids = [], world.real.topic_ids

    async def topic_ids(topics=None):
        if topics is not None and "made-up" in topics:
            asked.append(world.clock.monotonic())
        return await ids(topics)

    monkeypatch.setattr(world.real, "topic_ids", topic_ids)
    await world.until(lambda: asked)
    asked.clear()
    for priority in range(1, 20):
        world.edit(REBALANCES, "evil", "r", priority=priority)
        await asyncio.sleep(0.03)
    assert not asked
    await world.until(lambda: asked)


async def test_refusals_that_are_judged_again(world):
    """Resources that wait keep their places, although others are edited all the time."""
    connection = world.supervisor._book.of_owner(Owner("k", "prod"))
    world.connection(names=["own"])
    refused, told = world.supervisor._refused, []

    async def tell(_rebalances, _throttles, refusals):
        told.extend(refusals)
        refused.refuse(connection, dict(connection.refusals))
        await asyncio.sleep(0.01)

    world.supervisor._refused._unconnected.report = tell
    uids = {world.create("a", kafka=REF, name=name)["metadata"]["uid"] for name in "abcdefgh"}
    world.see("a")
    await world.until(lambda: len(told) > len(uids))
    assert set(told[: len(uids)]) == uids
