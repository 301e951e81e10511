"""Several operators for the same resources and brokers: exactly one leads, and another one takes over when it fails."""

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import pytest

from e2e.bench.kube import KubeCluster, OwnKubeCluster
from e2e.bench.operator import LEASE, OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.lane import OPERATOR_NAMESPACE, WATCHED
from e2e.rebalance import Rebalance, condition
from e2e.world import BIG, CRAWL, FAST, World

pytestmark = [pytest.mark.brokers, pytest.mark.apiserver]

NEVER = "1h"
"""A lease that does not expire during a test: it changes hands only when it is released."""
SHORT = "6s"
STANDSTILL = {"leaderRate": "16Ki", "followerRate": "16Ki"}
"""A copy of a BIG partition takes two minutes: it stays in flight until the rate is raised."""

OUTAGES = {"ApiServerUnreachable", "ApiServerForbidden"}
"""An API server that has just started refuses every request until its roles are loaded."""

Launch = Callable[[str, str], OperatorProcess]


@pytest.fixture
def launch(world: World, kube: KubeCluster, operator: OperatorProcess) -> Iterator[Launch]:
    """Starts operators by identity and lease duration, in place of the operator that all tests share."""
    operator.stop()
    made: list[OperatorProcess] = []

    def make(identity: str, lease: str) -> OperatorProcess:
        options = (*WATCHED, "--lease-duration", lease)
        made.append(OperatorProcess(kube, *options, identity=world.unique(identity), namespace=OPERATOR_NAMESPACE))
        return made[-1]

    yield make
    for process in made:
        process.close()
    kube.kubectl("delete", "lease", LEASE, "-n", OPERATOR_NAMESPACE, "--ignore-not-found")


class TestTwo:
    """Two operators run at the same time."""

    def test_one_acts_and_hands_over(self, world: World, launch: Launch) -> None:
        """The second logs once for whom it waits and nothing else; it leads after a clean stop of the first."""
        first, second = launch("first", NEVER).start(), launch("second", NEVER).start_waiting()
        self._carry_out(world, "both")
        assert _holder(world) == first.identity
        (waiting,) = second.said().splitlines()
        assert f"waiting for the lease held by {first.identity}" in waiting

        assert first.stop() == 0
        second.wait_ready()
        assert _holder(world) == second.identity
        self._carry_out(world, "handed")
        assert first.start_waiting().stop() == 0

    def _carry_out(self, world: World, name: str) -> None:
        topic = world.skewed(name, *[BIG] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance(name, topic, throttle=FAST)
        plan = world.planned(rebalance, before)
        rebalance.wait_for("Succeeded")
        _assert_carried_out(world, rebalance, plan)


class TestTakeover:
    """The leader fails with copies in flight."""

    @pytest.mark.campaign
    def test_killed(self, world: World, launch: Launch) -> None:
        """Killed with -9: the standby completes the same plan."""
        first, second = launch("first", SHORT).start(), launch("second", SHORT).start_waiting()
        rebalance, plan = _in_flight(world, "killed")
        first.kill9()
        second.wait_ready()
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        _assert_carried_out(world, rebalance, plan)
        assert _holder(world) == second.identity

    @pytest.mark.campaign
    def test_stopped_and_back_while_the_other_acts(self, world: World, launch: Launch) -> None:
        """Resumed while the other operator leads, it changes nothing, exits, and logs the reason."""
        first, second = launch("first", SHORT).start(), launch("second", SHORT).start_waiting()
        rebalance, plan = _in_flight(world, "thawed")
        first.freeze()
        second.wait_ready()
        wait_until("the second one knows the cluster", lambda: "connected at" in second.said())
        with world.sampling(plan["topic"]) as look:
            look.wait_more(5)
            first.thaw()
            assert first.ended() == 1
            look.wait_more(10)
        assert all(row == look.seen[0] for row in look.seen)
        assert f"LeadershipLost): lease {OPERATOR_NAMESPACE}/{LEASE} is held by {second.identity}" in first.said()
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        _assert_carried_out(world, rebalance, plan)

    @pytest.mark.campaign
    def test_stopped_and_back_when_all_is_done(self, world: World, launch: Launch) -> None:
        """Its pending work is stale: Kafka's tools confirm the result of the new leader."""
        first, second = launch("first", SHORT).start(), launch("second", SHORT).start_waiting()
        rebalance, plan = _in_flight(world, "late")
        first.freeze()
        second.wait_ready()
        rebalance.patch(throttle=FAST)
        rebalance.wait_for("Succeeded")
        status = rebalance.status
        first.thaw()
        assert first.ended() == 1
        assert "LeadershipLost" in first.said()
        _assert_carried_out(world, rebalance, plan)
        assert rebalance.status == status
        assert _holder(world) == second.identity
        assert second.running


@pytest.mark.alone
class TestOutage:
    """The API server is down."""

    @pytest.mark.campaign
    def test_stops_acting_and_goes_on(self, world: World, kube: KubeCluster, launch: Launch) -> None:
        """Without its lease it submits nothing, although Kafka is available; with the lease it continues."""
        if not isinstance(kube, OwnKubeCluster):
            pytest.skip("an API server that is not ours is not killed")
        only = launch("only", SHORT).start()
        topic = world.skewed("outage", *[BIG // 4] * 6)
        before = world.judge.describe_topics(topic)
        rebalance = world.rebalance("outage", topic, throttle=CRAWL, execution={"parallelPartitionCount": 1})
        plan = world.planned(rebalance, before)
        rebalance.until("a copy in flight", lambda status: status.get("currentBatchSize"))
        kube.kill9_api_server()
        try:
            wait_until("it knows that it may not act", lambda: "NotLeading" in only.said())
            wait_until("the copy has arrived", lambda: not world.in_flight(topic), every=0.3)
            with world.sampling(topic) as rest:
                rest.wait_more(30)
            assert rest.most_partitions == 0
            assert len(world.moved(topic, before)) < len(plan["partitions"])
        finally:
            kube.start_api_server()
        rebalance.patch(throttle=FAST)

        def has_gone_on() -> bool:
            # An API server that has just started refuses every request until its roles are loaded. This may end the
            # watch, and with it the process; a Pod would restart it.
            if not only.running:
                only.start()
            return condition(rebalance.status, "Succeeded") == "True"

        wait_until("it goes on to the end", has_gone_on, every=0.5)
        _assert_carried_out(world, rebalance, plan)
        assert _holder(world) == only.identity


def _in_flight(world: World, name: str) -> tuple[Rebalance, dict[str, Any]]:
    """A rebalance with copies in flight that do not complete by themselves; returns it and its plan."""
    topic = world.skewed(name, *[BIG] * 6)
    before = world.judge.describe_topics(topic)
    rebalance = world.rebalance(name, topic, throttle=STANDSTILL)
    plan = world.planned(rebalance, before)
    rebalance.until("copies in flight", lambda status: status.get("currentBatchSize"))
    return rebalance, {**plan, "topic": topic}


def _assert_carried_out(world: World, rebalance: Rebalance, plan: Mapping[str, Any]) -> None:
    """Kafka's tools confirm the plan; no throttle or reassignment is left. No transition was reported twice."""
    target = {(row["topic"], row["partition"]): row["replicas"] for row in plan["partitions"]}
    assert world.judge.verify(target) == []
    world.assert_tidy()
    assert rebalance.status["plan"]["hash"] == plan["summary"]["hash"]
    # On a busy machine a replica may leave the ISR for a moment.
    told = [reason for reason in rebalance.events() if reason not in {"Planning", "ClusterUnhealthy"}]
    assert all(before != after for before, after in pairwise(told))
    runs = [reason for reason in told if reason not in OUTAGES]
    assert (set(runs[:-1]), runs[-1]) == ({"Rebalancing"}, "Succeeded")


def _holder(world: World) -> str:
    lease = world.kube.get("lease", LEASE, "-n", OPERATOR_NAMESPACE)
    return str(lease["spec"]["holderIdentity"])
