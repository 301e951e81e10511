"""Which throttle a rebalance needs, where its rates come from, and what counts as its work."""

import pytest

from kafka_rebalance.api.v1alpha1 import parse_throttle
from kafka_rebalance.execution.decide import Direction, Errand, Kind, Verdict
from kafka_rebalance.execution.throttle import Rates
from kafka_rebalance.model.topology import ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.claims import DEFAULT_RATE, binds, claim_of, rates_of, ruling_throttle
from kafka_rebalance.reconcile.work import Work

KAFKA = {"bootstrapServers": "kafka:9092"}


def work(*, metadata=None, **spec):
    named = {"name": "r", "namespace": "kafka", "uid": "u-1", "generation": 3, **(metadata or {})}
    return Work.of({"metadata": named, "spec": {"kafka": KAFKA, **spec}})


def throttle(name="limits", created="2026-01-01T00:00:00Z", uid="k-1", deleted=None, **rates):
    metadata = {"name": name, "namespace": "kafka", "uid": uid, "creationTimestamp": created}
    if deleted:
        metadata["deletionTimestamp"] = deleted
    return parse_throttle({"metadata": metadata, "spec": {"kafka": KAFKA, **rates}})


class TestRates:
    def test_where_nobody_said_anything_a_safe_default_applies(self):
        """50 MiB/s on each side, and the status says so: full speed must be asked for."""
        rates, source = rates_of(work(), [])
        assert rates == Rates(DEFAULT_RATE, DEFAULT_RATE) == Rates(52428800, 52428800)
        assert "default" in source

    def test_a_throttle_resource_without_rates_leaves_the_default(self):
        """A resource that only freezes is no word on speed."""
        assert rates_of(work(), [throttle(freeze=True)])[0] == Rates(DEFAULT_RATE, DEFAULT_RATE)

    def test_without_its_own_the_clusters_throttle_rules(self):
        """Both sides as they are there: an unset side is unset."""
        rates, source = rates_of(work(), [throttle(leaderRate="10Mi")])
        assert rates == Rates(10 * 2**20, None)
        assert source == "KafkaReassignmentThrottle kafka/limits"

    @pytest.mark.parametrize(
        ("own", "shared", "bound", "named"),
        [
            ({"leaderRate": 5, "followerRate": 5}, {"leaderRate": 9, "followerRate": 9}, Rates(5, 5), False),
            ({"leaderRate": 20, "followerRate": 5}, {"leaderRate": 9, "followerRate": 9}, Rates(9, 5), True),
            ({"leaderRate": 5}, {"followerRate": 9}, Rates(5, 9), True),
            ({"unlimited": True}, {"leaderRate": 9}, Rates(9, None), True),
            ({"unlimited": True}, {}, Rates(None, None), False),
        ],
    )
    def test_its_own_can_only_be_lower(self, own, shared, bound, named):
        """The minimum per side; the source names the resource whenever it binds."""
        rates, source = rates_of(work(throttle=own), [throttle(**shared)])
        assert rates == bound
        assert ("kafka/limits" in source) is named


class TestRulingThrottle:
    def test_the_older_one_rules(self):
        """Two resources for one cluster: the later one is the conflict, whatever order they come in."""
        older = throttle("older", "2026-01-01T00:00:00Z", "z")
        later = throttle("later", "2026-01-02T00:00:00Z", "a")
        assert ruling_throttle([later, older]) is older
        assert ruling_throttle([older, later]) is older

    def test_of_the_same_second_the_uid_decides(self):
        """Every operator and every restart gives the same answer."""
        one, other = throttle("x", uid="a"), throttle("y", uid="b")
        assert ruling_throttle([other, one]) is one

    def test_one_that_is_being_deleted_does_not_rule(self):
        """Its word ends with the deletion, not with its finalizers."""
        going = throttle("older", deleted="2026-01-03T00:00:00Z")
        later = throttle("later", "2026-01-02T00:00:00Z")
        assert ruling_throttle([going, later]) is later
        assert ruling_throttle([going]) is None


def errand(partition):
    replicas = replicas_of(1, 2)
    return Errand(TopicPartition("t", partition), "", replicas, replicas, replicas_of(3, 4))


def cluster(*states):
    return ClusterState("c", {}, {s.tp: s for s in states})


def state(partition, *ids, adding=()):
    replicas = replicas_of(*ids)
    isr = frozenset(replicas) - set(adding)
    return PartitionState(TopicPartition("t", partition), "", replicas, isr, min(isr), replicas_of(*adding))


class TestClaim:
    rates, brokers = Rates(5, 5), frozenset(replicas_of(1, 2, 3, 4))

    def claimed(self, seen, submitted=None, errands=(0, 1)):
        return claim_of(self.rates, self.brokers, [errand(p) for p in errands], seen, submitted or {})

    def test_what_is_about_to_be_submitted_is_listed_before(self):
        """The throttle is in place before the first byte."""
        submitted = {TopicPartition("t", 0): replicas_of(3, 1, 2)}
        found = self.claimed(cluster(state(0, 1, 2), state(1, 1, 2)), submitted)
        assert found.leader_entries == {"t": {"0:1", "0:2"}}
        assert found.follower_entries == {"t": {"0:3"}}
        assert (found.rates, found.brokers) == (self.rates, self.brokers)

    def test_what_is_in_flight_stays_listed_without_any_memory(self):
        """After a crash the claim is the same, from what is seen; topics gather their partitions."""
        found = self.claimed(cluster(state(0, 3, 1, 2, adding=(3,)), state(1, 4, 1, 2, adding=(4,))))
        assert found.leader_entries == {"t": {"0:1", "0:2", "1:1", "1:2"}}
        assert found.follower_entries == {"t": {"0:3", "1:4"}}

    def test_lists_hold_only_what_is_being_moved(self):
        """At rest, gone, or merely reordered and dropped: no entry, so nobody else is slowed."""
        submitted = {TopicPartition("t", 0): replicas_of(2, 1)}
        found = self.claimed(cluster(state(0, 1, 2)), submitted, errands=(0, 1))
        assert found.leader_entries == found.follower_entries == {}

    @pytest.mark.parametrize("held", [False, True])
    def test_binds_while_something_is_copied(self, held):
        """Also where no new step may start: what is in flight stays throttled to its end."""
        assert binds(self.claimed(cluster(state(0, 3, 1, 2, adding=(3,)))), held=held)

    def test_held_back_and_at_rest_it_does_not_bind(self):
        """Awaiting approval, suspended or yielding it touches no broker, and its rate slows nobody else's copies."""
        resting = self.claimed(cluster(state(0, 1, 2), state(1, 3, 4)))
        assert not binds(resting, held=True)
        assert binds(resting, held=False)


class TestWork:
    def test_limits_are_those_of_the_spec_now(self):
        """Patched while it runs, they hold from the next tick on."""
        mine = work()
        assert mine.limits.parallel_partitions == 100
        named = {"name": "r", "namespace": "kafka", "uid": "u-1", "generation": 4}
        mine.update({"metadata": named, "spec": {"kafka": KAFKA, "execution": {"parallelPartitionCount": 7}}})
        assert mine.limits.parallel_partitions == 7

    @pytest.mark.parametrize(
        ("policy", "direction"),
        [
            ({}, Direction.ROLLBACK),
            ({"deletionPolicy": "Revert"}, Direction.REVERT),
            ({"deletionPolicy": "Abandon"}, None),
        ],
    )
    def test_deletion_leads_where_the_policy_says(self, policy, direction):
        """Rollback unless told otherwise."""
        assert work(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, **policy).heading is direction

    @pytest.mark.parametrize(
        ("change", "asked"),
        [
            ({"resourceVersion": "9"}, False),
            ({"generation": 4}, True),
            ({"deletionTimestamp": "2026-01-01T00:00:00Z"}, True),
            ({"finalizers": ["kafkarebalance.dev/rollback"]}, True),
        ],
    )
    def test_a_status_write_is_no_new_request(self, change, asked):
        """Else the engine would wake itself for ever."""
        assert (work(metadata=change).asked != work().asked) is asked

    @pytest.mark.parametrize(
        ("kinds", "finished"),
        [
            ([Kind.DONE, Kind.SKIPPED], True),
            ([Kind.DONE, Kind.WAITING], False),
            ([Kind.IN_FLIGHT], False),
            ([Kind.READY], False),
        ],
    )
    def test_finished_when_all_have_arrived_or_are_left_alone(self, kinds, finished):
        """A partition that waits is not finished."""
        mine = work()
        mine.verdicts = {TopicPartition("t", i): Verdict(kind) for i, kind in enumerate(kinds)}
        assert mine.finished is finished
