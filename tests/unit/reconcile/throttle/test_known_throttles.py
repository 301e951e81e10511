"""The throttle resources of a cluster: which one rules, and what is looked at again."""

import asyncio
import json
from datetime import timedelta

import pytest
from tests.fakes.stopped_clock import NOON, StoppedClock

from kafka_rebalance.api.overrides import THROTTLE_OVERRIDE
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleSpec
from kafka_rebalance.api.v1alpha1 import FINALIZER, KafkaReassignmentThrottle, parse_throttle
from kafka_rebalance.reconcile.throttle import known_throttles
from kafka_rebalance.reconcile.throttle.known_throttles import KnownThrottles
from kafka_rebalance.reconcile.throttle.slices import THROTTLES_OF_A_SLICE

AN_HOUR = {"leaderRate": "2Mi", "until": (NOON + timedelta(hours=1)).isoformat()}


def throttle(uid, *, age=0, rate="1Mi", override=None, **metadata):
    """One that has our finalizer and sets the rate of one broker; ``age`` in minutes."""
    created = (NOON - timedelta(minutes=age)).isoformat()
    given = {"name": uid, "namespace": "kafka", "uid": uid, "creationTimestamp": created, "finalizers": [FINALIZER]}
    if override is not None:
        given["annotations"] = {THROTTLE_OVERRIDE: json.dumps(override)}
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "brokers": [{"id": 1, "leaderRate": rate}]}
    return parse_throttle({"metadata": given | metadata, "spec": spec})


@pytest.fixture
def clock():
    return StoppedClock()


@pytest.fixture
def known(clock):
    return KnownThrottles(clock)


@pytest.fixture
def calls(monkeypatch):
    """The specs whose rates were looked at, and the resources whose overrides were."""
    rates, overrides = [], []
    sets_rates, as_of = KafkaReassignmentThrottleSpec.sets_rates.fget, KafkaReassignmentThrottle.as_of
    noted = property(lambda spec: (rates.append(spec), sets_rates(spec))[1])
    monkeypatch.setattr(KafkaReassignmentThrottleSpec, "sets_rates", noted)
    monkeypatch.setattr(KafkaReassignmentThrottle, "as_of", lambda t, now: (overrides.append(t), as_of(t, now))[1])
    return rates, overrides


class TestRuling:
    def test_the_oldest(self, known):
        """At any time: the answer that is kept follows each change."""
        assert known.ruling is None
        known.see({"new": throttle("new")})
        assert known.ruling is known["new"]
        known.see({"old": throttle("old", age=1)})
        assert known.ruling is known["old"]
        known.see({"old": throttle("old", age=1, deletionTimestamp=NOON.isoformat())})
        assert known.ruling is known["new"]
        known.pop("new")
        assert known.ruling is None

    def test_one_without_our_finalizer(self, known):
        """It rules if it sets no rate, also after an edit."""
        known.see({"a": throttle("a", finalizers=[])})
        assert (known.ruling, known.rating) == (None, [known["a"]])
        known.see({"a": throttle("a", finalizers=[], rate=-1)})
        assert (known.ruling, known.rating) == (known["a"], [])
        known.see({"a": throttle("a", finalizers=[])})
        assert (known.ruling, known.rating) == (None, [known["a"]])

    def test_rates_are_looked_at_once(self, known, calls):
        """Which one rules is asked several times in a round."""
        known.see({uid: throttle(uid, finalizers=[]) for uid in "abc"})
        for uid in "ab":
            known.pop(uid)
            assert known.ruling is None
        assert len(calls[0]) == 3


class TestSee:
    def test_what_is_the_same_is_not_taken_in_again(self, known, calls):
        """A connection hands over all of its resources whenever one of them changes."""
        seen = {"a": throttle("a", override=AN_HOUR)}
        for _ in range(3):
            known.see(seen)
        assert len(calls[1]) == 1
        known.pop("a")
        known.see(seen)
        assert known["a"].spec.leader_rate == 2 * 2**20

    def test_one_that_is_gone(self, known):
        """Its last event may arrive late."""
        known.see({"a": throttle("a")})
        known.remove_gone("a")
        known.see({"a": throttle("a")})
        assert known == {}

    def test_the_last_ones_that_are_gone(self, known, monkeypatch):
        """Users may create and delete resources for as long as the operator runs."""
        monkeypatch.setattr(known_throttles, "_MOST_GONE", 2)
        for uid in ("a", "b", "b", "c"):
            known.remove_gone(uid)
        known.see({uid: throttle(uid) for uid in "abc"})
        assert list(known) == ["a"]


class TestFollowOverrides:
    async def test_they_end(self, known, clock):
        """No event says so."""
        known.see({"a": throttle("a", override=AN_HOUR)})
        assert known["a"].spec.leader_rate == 2 * 2**20
        clock.at += timedelta(hours=2)
        await known.follow_overrides()
        assert known["a"].spec.leader_rate is None

    async def test_they_are_read_again_only_when_one_has_ended(self, known, clock, calls):
        """They can only end, unless the clock is set back."""
        known.see({"a": throttle("a", override=AN_HOUR), "b": throttle("b")})
        _, overrides = calls
        for hours, read, rate in ((0.9, [], 2 * 2**20), (1, ["a"], None), (0.9, ["a"], 2 * 2**20)):
            clock.at = NOON + timedelta(hours=hours)
            overrides.clear()
            await known.follow_overrides()
            assert ([t.metadata.uid for t in overrides], known["a"].spec.leader_rate) == (read, rate), hours

    async def test_after_an_unexpected_error(self, known, monkeypatch):
        """They are read again in the next round."""
        with monkeypatch.context() as broken:
            broken.setattr(KafkaReassignmentThrottle, "as_of", lambda *_: 1 / 0)
            known.see({"a": throttle("a", override=AN_HOUR)})
        assert (known["a"].spec.leader_rate, len(known["a"].override_problems)) == (None, 1)
        await known.follow_overrides()
        assert (known["a"].spec.leader_rate, known["a"].override_problems) == (2 * 2**20, ())

    async def test_what_changes_meanwhile_is_kept(self, known):
        """A resource may be removed or replaced while others are looked at."""
        uids = [str(number) for number in range(2 * THROTTLES_OF_A_SLICE)]
        known.see({uid: throttle(uid) for uid in uids})
        *_, replaced, removed = uids

        async def change():
            known.see({replaced: throttle(replaced, rate="3Mi")})
            known.pop(removed)

        await asyncio.gather(known.follow_overrides(), change())
        assert known[replaced].spec.brokers[0].leader_rate == 3 * 2**20
        assert removed not in known
