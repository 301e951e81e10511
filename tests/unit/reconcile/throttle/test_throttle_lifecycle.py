"""A throttle resource has a finalizer before its rates apply, until its configs are restored or waiting is futile."""

import json
from datetime import timedelta

import pytest
from tests.fakes.kube_in_memory import KubeInMemory
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api import v1alpha1, validation
from kafka_rebalance.api.overrides import FREEZE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import FINALIZER, LET_GO_ANNOTATION, REASSIGNMENT_THROTTLES, parse_throttle
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.reconcile.act.resources import Resources
from kafka_rebalance.reconcile.throttle.known_throttles import KnownThrottles
from kafka_rebalance.reconcile.throttle.throttle_lifecycle import (
    ThrottleLifecycle,
    first_seen,
    requested_of,
    seen_again,
)

KAFKA = {"bootstrapServers": "kafka:9092"}
WHERE = (REASSIGNMENT_THROTTLES, "kafka")


class World:
    """An API server, one lifecycle, and an engine's mapping of throttles."""

    def __init__(self):
        self.kube, self.clock = KubeInMemory(), StoppedClock()
        self.throttles = KnownThrottles(self.clock)
        self.resources = Resources(self.kube, self.clock.now)
        self.lifecycle = ThrottleLifecycle(self.resources, self.clock)

    def applied(self, name="limits", *, created=NOON, finalizers=(), annotations=None, **spec):
        metadata = {"name": name, "namespace": "kafka", "uid": name, "creationTimestamp": created.isoformat()}
        metadata |= {"finalizers": list(finalizers), "annotations": annotations or {}}
        spec = {"kafka": KAFKA, "leaderRate": "50Mi", **spec}
        self.throttles[name] = parse_throttle(self.kube.create(WHERE[0], {"metadata": metadata, "spec": spec}))

    def deleted(self, name="limits", **more):
        self.applied(name, finalizers=[FINALIZER, "example.com/theirs"], **more)
        body = self.kube.delete(*WHERE, name, self.clock.at.isoformat())
        self.throttles[name] = first_seen(body)

    def after(self, **time):
        self.clock.at = NOON + timedelta(**time)

    def finalizers(self, name="limits"):
        return self.kube.resources[(*WHERE, name)]["metadata"]["finalizers"]

    @property
    def events(self):
        return [reason for reason, _ in self.kube.events]


@pytest.fixture
def world():
    return World()


class TestHold:
    async def test_the_rates_count_once_it_is_held(self, world):
        """In the same round: the API server's answer is as good as the watch."""
        world.applied()
        assert world.throttles.claimable == []
        await world.lifecycle.add_finalizer(world.throttles)
        assert world.finalizers() == [FINALIZER]
        assert [t.metadata.name for t in world.throttles.claimable] == ["limits"]

    async def test_it_is_held_once(self, world):
        """Also if the watch lags and shows the resource without it."""
        world.applied()
        before = dict(world.throttles)
        await world.lifecycle.add_finalizer(world.throttles)
        await world.lifecycle.add_finalizer(world.throttles)
        world.throttles.update(before)
        await world.lifecycle.add_finalizer(world.throttles)
        assert [what for what, *_ in world.kube.writes] == ["finalizers"]
        assert world.throttles["limits"].metadata.held

    async def test_only_the_one_that_rules(self, world):
        """The other never takes effect, so its deletion does not wait; it gets the finalizer when its turn comes."""
        world.applied("older", created=NOON - timedelta(hours=1))
        world.applied("newer")
        await world.lifecycle.add_finalizer(world.throttles)
        assert (world.finalizers("older"), world.finalizers("newer")) == ([FINALIZER], [])
        world.throttles["older"] = first_seen(world.kube.delete(*WHERE, "older", NOON.isoformat()))
        assert world.throttles.claimable == []
        await world.lifecycle.add_finalizer(world.throttles)
        assert [t.metadata.name for t in world.throttles.claimable] == ["newer"]

    async def test_what_sets_no_rate_is_not_held_and_counts(self, world):
        """A freeze and ceilings leave nothing behind."""
        world.applied(leaderRate=-1, freeze=True)
        await world.lifecycle.add_finalizer(world.throttles)
        assert world.finalizers() == []
        assert len(world.throttles.claimable) == 1

    async def test_gone_meanwhile(self, world):
        """Also if another resource has its name now."""
        world.applied()
        world.kube.resources.clear()
        await world.lifecycle.add_finalizer(world.throttles)
        assert world.throttles == {}
        world.applied()
        body = {"metadata": {"name": "limits", "namespace": "kafka", "uid": "other"}, "spec": {"kafka": KAFKA}}
        world.kube.create(WHERE[0], body)
        await world.lifecycle.add_finalizer(world.throttles)
        assert world.throttles == {}
        assert world.finalizers() == []

    async def test_what_the_watch_brings_meanwhile_is_newer(self, world):
        """An answer must not undo an edit that the watch has delivered before."""
        world.applied()
        watched = world.throttles["limits"].model_copy(update={"unread": "seen while the answer was under way"})

        def rival(_):
            world.throttles["limits"] = watched

        world.kube.rivals = [rival]
        await world.lifecycle.add_finalizer(world.throttles)
        assert world.throttles["limits"] is watched

    async def test_it_cannot_be_held(self, world, monkeypatch):
        """Reported, retried after a while, and cleared when it succeeds."""
        world.applied()
        mine = world.throttles["limits"]

        async def refuse(*_):
            world.kube.writes.append("refused")
            raise Forbidden("cannot patch")

        with monkeypatch.context() as patched:
            patched.setattr(world.kube, "patch_finalizers", refuse)
            for seconds in (0, 1, 16):
                world.after(seconds=seconds)
                await world.lifecycle.add_finalizer(world.throttles)
        assert world.kube.writes == ["refused"] * 2
        assert world.lifecycle.problem_of(mine).reason == "ApiServerForbidden"
        assert world.lifecycle.problem_of(mine).__traceback__ is None, "would keep an engine that ends"
        assert world.throttles.claimable == []
        world.after(seconds=60)
        await world.lifecycle.add_finalizer(world.throttles)
        assert world.lifecycle.problem_of(mine) is None
        assert world.finalizers() == [FINALIZER]


class TestLetGo:
    async def test_when_what_it_claimed_is_back(self, world):
        """And not before. Foreign finalizers stay."""
        world.deleted()
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: False)
        assert world.finalizers() == [FINALIZER, "example.com/theirs"]
        await world.lifecycle.remove_finalizers(world.throttles, lambda throttle: throttle.metadata.name == "limits")
        assert world.finalizers() == ["example.com/theirs"]
        assert world.throttles == {}
        assert world.events == ["Restored"]

    async def test_what_is_not_deleted_is_left_alone(self, world):
        """The finalizer goes even if configs are left to restore."""
        world.applied(finalizers=[FINALIZER])
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: True)
        assert world.finalizers() == [FINALIZER]
        assert "limits" in world.throttles

    async def test_by_order(self, world):
        """The annotation takes effect at once, reachable or not; the event names what is left."""
        world.deleted(annotations={LET_GO_ANNOTATION: "true"})
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: False)
        assert world.throttles == {}
        ((reason, message),) = world.kube.events
        assert reason == "Abandoned"
        assert "ledger" in message

    async def test_without_kafka_after_two_minutes(self, world):
        """Two minutes without Kafka: one failed round after a restart is not enough, however old the deletion is."""
        world.deleted()
        for minutes, connected in ((60, False), (61, False), (62, True), (63, False), (64, False)):
            world.after(minutes=minutes)
            await world.lifecycle.remove_finalizers(world.throttles, lambda _: False, connected=connected)
        assert FINALIZER in world.finalizers()
        world.after(minutes=65)
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: True, connected=False)
        assert world.throttles == {}
        assert world.events == ["Abandoned"]

    async def test_a_namespace_that_goes_is_held_up_for_two_minutes_at_most(self, world):
        """Also with Kafka available."""
        world.deleted()
        world.kube.terminating_namespaces.add("kafka")
        for seconds in (0, 119):
            world.after(seconds=seconds)
            await world.lifecycle.remove_finalizers(world.throttles, lambda _: False)
            assert FINALIZER in world.finalizers()
        world.after(seconds=120)
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: False)
        assert world.throttles == {}

    async def test_with_kafka_at_hand_it_waits_for_as_long_as_it_takes(self, world):
        """A broker that refuses may be fixed; the annotation is the way out. The namespace is checked as well."""
        world.deleted()
        for minutes in (1, 3, 300):
            world.after(minutes=minutes)
            await world.lifecycle.remove_finalizers(world.throttles, lambda _: False)
        assert FINALIZER in world.finalizers()
        world.kube.terminating_namespaces.add("kafka")
        world.after(minutes=301)
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: False)
        assert world.throttles == {}

    async def test_the_api_server_does_not_listen(self, world, monkeypatch):
        """Retried; the others continue."""
        world.deleted("one")
        world.deleted("two")
        real, failures = world.kube.patch_finalizers, [1]

        async def flaky(plural, namespace, name, *rest):
            if name == "one" and failures:
                failures.pop()
                raise Transient("ApiServerUnreachable", "no answer", retry_after=5)
            return await real(plural, namespace, name, *rest)

        monkeypatch.setattr(world.kube, "patch_finalizers", flaky)
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: True)
        assert list(world.throttles) == ["one"]
        assert world.lifecycle.problem_of(world.throttles["one"]).reason == "ApiServerUnreachable"
        for seconds, left in ((4, ["one"]), (5, [])):
            world.after(seconds=seconds)
            await world.lifecycle.remove_finalizers(world.throttles, lambda _: True)
            assert list(world.throttles) == left

    async def test_without_our_finalizer_nobody_waits_for_us(self, world):
        """Deleted before it got the finalizer."""
        world.applied(finalizers=["example.com/theirs"])
        world.throttles["limits"] = first_seen(world.kube.delete(*WHERE, "limits", NOON.isoformat()))
        await world.lifecycle.remove_finalizers(world.throttles, lambda _: False)
        assert world.throttles == {}
        assert (world.kube.writes, world.events) == ([], [])


class TestSeen:
    """An invalid spec hides neither a deletion nor the last valid spec."""

    @pytest.fixture
    def parsed(self, monkeypatch):
        """The paths of what has been parsed."""
        paths = []

        def validate(model, value, path):
            paths.append(path)
            return validation.validate(model, value, path)

        monkeypatch.setattr(v1alpha1, "validate", validate)
        return paths

    def body(self, world, **spec):
        world.applied(finalizers=[FINALIZER])
        return world.kube.edit(*WHERE, "limits", **spec)

    def test_a_newer_spec_that_cannot_be_read(self, world):
        """The last valid spec applies and the error is reported; once fixed, the error is gone."""
        body = self.body(world, leaderRate="fast")
        before = world.throttles["limits"]
        seen = seen_again(before, body)
        assert seen.spec == before.spec
        assert seen.unread.startswith("spec.leaderRate: ")
        assert seen.metadata.generation == 2
        assert requested_of(seen) != requested_of(before)
        mended = seen_again(seen, world.kube.edit(*WHERE, "limits", leaderRate="1Mi"))
        assert (mended.unread, mended.spec.leader_rate) == ("", 2**20)

    def test_its_deletion_is_seen(self, world):
        """For a known resource and for one that was never valid."""
        self.body(world, leaderRate="fast", bogus=1)
        gone = world.kube.delete(*WHERE, "limits", NOON.isoformat())
        assert seen_again(world.throttles["limits"], gone).metadata.deleting
        seen = first_seen(gone)
        assert (seen.metadata.deleting, seen.metadata.held) == (True, True)
        assert (seen.spec.kafka.bootstrap_servers, seen.spec.sets_rates) == ("kafka:9092", False)

    def test_without_its_cluster_nothing_can_be_given_back(self, world):
        """Then it is refused like any other."""
        self.body(world, kafka={})
        with pytest.raises(Refused, match=r"^spec\.kafka: requires either"):
            first_seen(world.kube.delete(*WHERE, "limits", NOON.isoformat()))

    async def test_our_own_writes_ask_for_nothing(self, world):
        """They come back as changes; a status update must not wake the engine."""
        world.applied(finalizers=[FINALIZER])
        before = world.throttles["limits"]
        await world.resources.report_throttle(before, "c", before)
        after = seen_again(before, world.kube.resources[(*WHERE, "limits")])
        assert after.status != before.status
        assert requested_of(after) == requested_of(before)
        world.kube.resources[(*WHERE, "limits")]["metadata"]["annotations"] = {LET_GO_ANNOTATION: "true"}
        assert requested_of(seen_again(before, world.kube.resources[(*WHERE, "limits")])) != requested_of(before)

    def test_a_spec_of_the_same_generation_is_not_parsed_again(self, world, parsed):
        """Users may annotate it all the time. Annotations, finalizers and the status count all the same."""
        override = json.dumps({"freeze": True, "until": (NOON + timedelta(hours=1)).isoformat()})
        world.applied(annotations={FREEZE_OVERRIDE: override})
        given = world.throttles["limits"]
        before = given.as_of(NOON)
        assert (given.spec.freeze, before.spec.freeze) == (False, True)
        body = world.kube.resources[(*WHERE, "limits")]
        body["metadata"] |= {"annotations": {LET_GO_ANNOTATION: "true"}, "finalizers": [FINALIZER]}
        body["status"] = {"observedGeneration": 1}
        expected = parse_throttle(body)
        parsed.clear()
        seen = seen_again(before, body)
        assert seen == expected
        assert parsed == ["metadata"]

    def test_a_spec_that_cannot_be_read_is_not_parsed_again_either(self, world, parsed):
        """Why it cannot be read stays known until the spec is changed."""
        body = self.body(world, leaderRate="fast")
        before = seen_again(world.throttles["limits"], body)
        parsed.clear()
        assert seen_again(before, body) == before
        assert parsed == ["metadata"]

    def test_the_spec_of_another_uid_is_parsed(self, world):
        """Every resource has generation 1 when it is created."""
        world.applied()
        body = {**world.kube.resources[(*WHERE, "limits")], "spec": {"kafka": KAFKA, "leaderRate": "1Mi"}}
        body["metadata"] = {**body["metadata"], "uid": "successor"}
        assert seen_again(world.throttles["limits"], body).spec.leader_rate == 2**20
