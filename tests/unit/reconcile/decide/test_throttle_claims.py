"""The throttle that a rebalance needs, the source of its rates, and which moves it covers."""

from dataclasses import replace

import pytest
from tests.fakes.found_by_rounds import found, recorded, remembered
from tests.fakes.throttled_cluster import sides

from kafka_rebalance.api.v1alpha1 import parse_throttle
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.log_dir_moves import LogDirStatus, LogDirStatuses
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.execution.partition_status import Direction, MovePhase, PartitionStatus
from kafka_rebalance.execution.queue_order import Place
from kafka_rebalance.execution.reassignment_throttle import ClusterRates, Rates
from kafka_rebalance.model.topology import BrokerId, ClusterState, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.decide.direction import direction_of
from kafka_rebalance.reconcile.decide.throttle_claims import (
    DEFAULT_RATE,
    Moving,
    claims_of,
    moving_now,
    rates_of,
    ruling_throttle,
)
from kafka_rebalance.reconcile.state.assessment import StepBlock
from kafka_rebalance.reconcile.state.desired import Desired
from kafka_rebalance.reconcile.state.judgement import Statuses
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import LoadedRun

KAFKA = {"bootstrapServers": "kafka:9092"}


def desired(*, metadata=None, **spec):
    named = {"name": "r", "namespace": "kafka", "uid": "u-1", "generation": 3, **(metadata or {})}
    return Desired.of({"metadata": named, "spec": {"kafka": KAFKA, **spec}})


def throttle(name="limits", created="2026-01-01T00:00:00Z", uid="k-1", deleted=None, **rates):
    metadata = {"name": name, "namespace": "kafka", "uid": uid, "creationTimestamp": created}
    if deleted:
        metadata["deletionTimestamp"] = deleted
    return parse_throttle({"metadata": metadata, "spec": {"kafka": KAFKA, **rates}})


class TestRates:
    def test_where_nobody_said_anything_a_safe_default_applies(self):
        """50 MiB/s on each side, shown in the status: full speed must be requested explicitly."""
        rates, source = rates_of(desired().spec.throttle, None)
        assert rates == ClusterRates(Rates(DEFAULT_RATE, DEFAULT_RATE)) == ClusterRates(Rates(52428800, 52428800))
        assert "default" in source

    def test_a_throttle_resource_without_rates_leaves_the_default(self):
        """A resource that only freezes sets no rate."""
        assert rates_of(desired().spec.throttle, throttle(freeze=True))[0].general == Rates(DEFAULT_RATE, DEFAULT_RATE)

    def test_the_default_does_not_apply_to_brokers_with_a_rate(self):
        """The resource only sets a rate on broker 2, above the default; it says nothing about broker 3."""
        rows = [{"id": 2, "leaderRate": "100Mi"}, {"id": 3, "leaderRate": -1}]
        default = Rates(DEFAULT_RATE, DEFAULT_RATE)
        rates, _ = rates_of(desired().spec.throttle, throttle(brokers=rows))
        assert rates == ClusterRates(default, {2: Rates(100 * 2**20, None), 3: default})

    def test_without_its_own_the_clusters_throttle_rules(self):
        """Both sides as set there: an unset side stays unset."""
        rates, source = rates_of(desired().spec.throttle, throttle(leaderRate="10Mi"))
        assert rates == ClusterRates(Rates(10 * 2**20, None))
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
        """The minimum per side; the source names the resource whenever its rate binds."""
        rates, source = rates_of(desired(throttle=own).spec.throttle, throttle(**shared))
        assert rates == ClusterRates(bound)
        assert ("kafka/limits" in source) is named

    def test_brokers_with_rates_of_their_own(self):
        """The same rules per broker: unset means the general rate, -1 no limit; the own rate can only be lower."""
        shared = throttle(leaderRate=9, brokers=[{"id": 1, "leaderRate": 3}, {"id": 2, "leaderRate": -1}])
        rates, _ = rates_of(desired().spec.throttle, shared)
        assert (rates.on(1), rates.on(2), rates.on(3)) == (Rates(3), Rates(), Rates(9))
        rates, _ = rates_of(desired(throttle={"leaderRate": 5, "followerRate": 5}).spec.throttle, shared)
        assert (rates.on(1), rates.on(2), rates.on(3)) == (Rates(3, 5), Rates(5, 5), Rates(5, 5))


class TestRulingThrottle:
    def test_the_older_one_rules(self):
        """Two resources for one cluster: the later one conflicts, in any order of arrival."""
        older = throttle("older", "2026-01-01T00:00:00Z", "z")
        later = throttle("later", "2026-01-02T00:00:00Z", "a")
        assert ruling_throttle([later, older]) is older
        assert ruling_throttle([older, later]) is older

    def test_of_the_same_second_the_uid_decides(self):
        """Every operator gives the same answer, also after a restart."""
        one, other = throttle("x", uid="a"), throttle("y", uid="b")
        assert ruling_throttle([other, one]) is one

    def test_one_that_is_being_deleted_does_not_rule(self):
        """Its rates end with the deletion, not with its finalizers."""
        going = throttle("older", deleted="2026-01-03T00:00:00Z")
        later = throttle("later", "2026-01-02T00:00:00Z")
        assert ruling_throttle([going, later]) is later
        assert ruling_throttle([going]) is None


def move(partition):
    replicas = replicas_of(1, 2)
    return PartitionMove(TopicPartition("t", partition), "", replicas, replicas, replicas_of(3, 4))


def cluster(*states):
    return ClusterState("c", {}, {s.tp: s for s in states})


def state(partition, *ids, adding=(), isr=None):
    replicas = replicas_of(*ids)
    in_sync = frozenset(replicas) - set(adding) if isr is None else frozenset(isr)
    return PartitionState(TopicPartition("t", partition), "", replicas, in_sync, min(in_sync), replicas_of(*adding))


def moving(*states, submitted=None, relieve=True):
    return moving_now([(s.tp, s) for s in states], submitted or {}, relieve=lambda _: relieve)


class TestMoving:
    def test_what_is_about_to_be_submitted_is_listed_before(self):
        """The throttle is in place before the first byte is copied."""
        submitted = {TopicPartition("t", 0): replicas_of(3, 1, 2)}
        found = moving(state(0, 1, 2), state(1, 1, 2), submitted=submitted)
        assert found == Moving(sides({"0:1", "0:2", "0:3"}, {"0:3"}))

    def test_what_is_in_flight_stays_listed_without_any_memory(self):
        """After a crash the claim is the same, derived from metadata; partitions are grouped by topic."""
        found = moving(state(0, 3, 1, 2, adding=(3,)), state(1, 4, 1, 2, adding=(4,)))
        assert found == Moving(sides({"0:1", "0:2", "0:3", "1:1", "1:2", "1:4"}, {"0:3", "1:4"}))

    def test_lists_hold_only_what_is_being_moved(self):
        """A partition at rest, gone, or only reordered or shrunk has no entry, so no replication is slowed."""
        assert moving(state(0, 1, 2), submitted={TopicPartition("t", 0): replicas_of(2, 1)}) == Moving({})

    def test_a_retained_follower_that_fell_out_of_sync_is_relieved(self):
        """Its partition leaves the leaders' list, the followers' side still limits the copy; the other one stays."""
        fallen = state(0, 3, 1, 2, adding=(3,), isr=(1,))
        found = moving(fallen, state(1, 4, 1, 2, adding=(4,)))
        assert found == Moving(sides({"1:1", "1:2", "1:4"}, {"0:3", "1:4"}), relieved=1)

    def test_nobody_is_relieved_where_only_the_leaders_side_is_throttled(self):
        """The copy would run at full speed."""
        found = moving(state(0, 3, 1, 2, adding=(3,), isr=(1,)), relieve=False)
        assert found == Moving(sides({"0:1", "0:2", "0:3"}, {"0:3"}))

    def test_only_the_entries_of_topics_that_have_changed_are_found_again(self):
        """With a thousand copies in flight, few change between two rounds; the result is the same as from scratch."""
        elsewhere = replace(state(0, 3, 1, adding=(3,)), tp=TopicPartition("u", 0))
        first, second = state(0, 3, 1, 2, adding=(3,)), state(1, 1, 2)
        before = moving(first, second, elsewhere)
        begun = replace(second, replicas=replicas_of(4, 1, 2), adding=replicas_of(4))
        ended = state(0, 3, 1)
        for now in ([first, begun, elsewhere], [ended, begun, elsewhere], [begun, elsewhere], [elsewhere]):
            found = moving_now([(s.tp, s) for s in now], {}, before, relieve=lambda _: True)
            assert found == moving(*now)
            assert found.entries["u"] is before.entries["u"]
            before = found

    def test_a_partition_is_relieved_when_the_followers_side_gets_a_rate(self):
        """That is no change of the partition."""
        fallen = state(0, 3, 1, 2, adding=(3,), isr=(1,))
        without = moving(fallen, relieve=False)
        assert moving_now([(fallen.tp, fallen)], {}, without, relieve=lambda _: True) == moving(fallen)


def running(*partitions, name="r", block=None, **spec):
    """A rebalance with these partitions in its open run, to be moved to 3 and 4."""
    mine = Rebalance(desired(metadata={"name": name, "uid": f"u-{name}"}, **spec))
    moves = tuple(move(p) for p in partitions)
    brokers = frozenset(replicas_of(1, 2, 3, 4))
    recorded(mine, loaded_run=LoadedRun(None, None, "", {}, moves, {m.tp: m for m in moves}, frozenset({"t"}), brokers))
    return found(mine, statuses={m.tp: PartitionStatus(MovePhase.IN_FLIGHT) for m in moves}, step_block=block)


FLYING = state(0, 3, 1, 2, adding=(3,))
COPYING = LogDirStatuses(by_replica={(TopicPartition("t", 0), BrokerId(1)): LogDirStatus(MovePhase.IN_FLIGHT)})


class TestClaims:
    def claims(self, *rebalances, ruling=None, seen=(FLYING,), foreign=()):
        return claims_of(rebalances, ruling, cluster(*seen), {}, {s.tp: s for s in foreign}).by_name

    @pytest.mark.parametrize("flies", [True, False])
    def test_copies_of_a_plan_that_copies_nothing(self, flies):
        """It only drops replicas. Others have moved the partition since, so the step that moves it back copies."""
        mine = running(0)
        recorded(mine, loaded_run=replace(mine.record.loaded_run, brokers=frozenset()))
        found(mine, statuses={TopicPartition("t", 0): PartitionStatus(MovePhase.READY, started=True)})
        seen = state(0, 1, 2, adding=(2,)) if flies else state(0, 1)
        orders = {} if flies else {TopicPartition("t", 0): replicas_of(1, 2)}
        (claim,) = claims_of([mine], None, cluster(seen), {mine.desired.uid: orders}, {}).by_name.values()
        assert claim.brokers == {1, 2}

    @pytest.mark.parametrize("phase", [MovePhase.IN_FLIGHT, MovePhase.SKIPPED])
    def test_one_that_waits_claims_what_no_other_moves(self, phase):
        """The one that goes first has the partition in its plan, and moves it or leaves it alone."""
        first, waiting = running(0), found(running(0, name="waiting"), place=Place(runs=False))
        statuses = {m.tp: PartitionStatus(phase) for m in first.record.moves}
        found(
            first,
            place=Place(runs=True),
            statuses=statuses | {TopicPartition("t", 1): PartitionStatus(MovePhase.READY)},
        )
        claim = self.claims(first, waiting)["KafkaRebalance kafka/waiting"]
        assert claim.entries == (sides({"0:1", "0:2", "0:3"}, {"0:3"}) if phase is MovePhase.SKIPPED else {})

    def test_each_rebalance_claims_under_its_name(self):
        """The rates of its spec, on the brokers of its plan, for moving replicas."""
        found = self.claims(running(0, throttle={"leaderRate": 5, "followerRate": 6}))
        (claim,) = found.values()
        assert set(found) == {"KafkaRebalance kafka/r"}
        assert (claim.rates, claim.brokers, claim.asked) == (Rates(5, 6), {1, 2, 3, 4}, True)
        assert claim.entries == sides({"0:1", "0:2", "0:3"}, {"0:3"})

    def test_the_default_is_nobodys_word(self):
        """It gives way to a lower replication throttle. The first rate in the spec changes this claim, not its name."""
        (claim,) = self.claims(running(0)).values()
        assert set(self.claims(running(0))) == set(self.claims(running(0, throttle={"leaderRate": 5})))
        assert (claim.rates, claim.asked) == (Rates(DEFAULT_RATE, DEFAULT_RATE), False)

    def test_the_default_claims_nothing_on_brokers_with_a_rate(self):
        """There the claim of the resource that sets the rate applies alone."""
        rows = throttle(brokers=[{"id": 3, "followerRate": "100Mi"}])
        claim = self.claims(running(0), ruling=rows)["KafkaRebalance kafka/r"]
        assert (claim.on(1), claim.on(3)) == (Rates(DEFAULT_RATE, DEFAULT_RATE), Rates())

    def test_full_speed_lists_what_moves_without_a_rate(self):
        """It shares the replication throttle (KIP-542)."""
        (claim,) = self.claims(running(0, throttle={"unlimited": True})).values()
        assert (claim.rates, claim.copies) == (Rates(), True)

    def test_the_clusters_resource_claims_all_that_moves(self):
        """Our reassignments and foreign ones, with its overrides; then the default does not apply."""
        limits = throttle(leaderRate=9, brokers=[{"id": 3, "followerRate": 2}])
        theirs = state(7, 5, 6, 8, adding=(8,))
        found = self.claims(running(0), ruling=limits, foreign=[theirs])
        claim = found["KafkaReassignmentThrottle kafka/limits"]
        assert found["KafkaRebalance kafka/r"].rates == Rates()
        assert claim.brokers == {1, 2, 3, 4, 5, 6, 8}
        assert claim.entries == sides({"0:1", "0:2", "0:3", "7:5", "7:6", "7:8"}, {"0:3", "7:8"})
        assert (claim.on(1), claim.on(3)) == (Rates(9, None), Rates(9, 2))

    def test_it_claims_what_others_move_while_nothing_of_ours_does(self):
        """And nothing while nothing moves."""
        limits = throttle(leaderRate=9)
        assert set(self.claims(ruling=limits, foreign=[FLYING])) == {"KafkaReassignmentThrottle kafka/limits"}
        assert self.claims(ruling=limits) == {}

    def test_one_that_only_freezes_claims_nothing(self):
        """It sets no rate."""
        assert self.claims(ruling=throttle(freeze=True), foreign=[FLYING]) == {}

    def test_what_is_held_back_and_copies_nothing_slows_nobody(self):
        """While awaiting approval, suspended or yielding it throttles no broker; copies in flight stay throttled."""
        block = StepBlock(Reason.SUSPENDED, "suspended")
        assert self.claims(running(1, block=block), seen=[state(1, 1, 2)]) == {}
        assert self.claims(running(1), seen=[state(1, 1, 2)])
        assert self.claims(running(0, block=block))

    def test_one_that_is_blocked_by_a_problem_claims_what_it_copies(self):
        """Its copies in flight continue, and another rebalance must not raise their rate."""
        blocked = running(0, throttle={"leaderRate": 5})
        remembered(blocked, problem=Transient("SecretMissing", "no such secret"))
        assert self.claims(blocked)
        assert self.claims(blocked, seen=[state(0, 1, 2)]) == {}

    def test_one_that_may_not_use_its_connection_sets_no_rate(self):
        """Its users may not limit these brokers: reassignments in flight go on at the rates of the cluster."""
        asked = {"leaderRate": 5, "followerRate": 5, "logDirRate": 5}
        refused = found(running(0, throttle=asked), log_dirs=COPYING)
        refused.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "no")
        recorded(refused, origins={FLYING.tp: None})
        claims = self.claims(refused)
        defaults = [Rates(DEFAULT_RATE, DEFAULT_RATE), Rates(log_dirs=DEFAULT_RATE)]
        assert [(claim.rates, claim.asked) for claim in claims.values()] == [(rates, False) for rates in defaults]
        assert self.claims(refused, ruling=throttle(leaderRate=9))["KafkaRebalance kafka/r"].rates == Rates()

    def test_nor_does_it_claim_what_others_move(self):
        """Partitions of its plan that it has not begun to move. The throttle of the cluster applies to them."""
        refused = running(0, 1, block=StepBlock(Reason.CONNECTION_NOT_PERMITTED, "no"))
        refused.refusal = Refused(Reason.CONNECTION_NOT_PERMITTED, "no")
        assert self.claims(refused) == {}
        assert set(self.claims(refused, ruling=throttle(leaderRate=9))) == {"KafkaReassignmentThrottle kafka/limits"}
        recorded(refused, origins={FLYING.tp: None})
        claims = self.claims(refused, seen=[FLYING, replace(FLYING, tp=TopicPartition("t", 1))])
        assert claims["KafkaRebalance kafka/r"].entries == sides({"0:1", "0:2", "0:3"}, {"0:3"})

    def test_nobody_is_relieved_where_the_destination_is_not_throttled(self):
        """An override removes its limit: without the leaders' side the copy would run at full speed."""
        fallen = state(0, 3, 1, 2, adding=(3,), isr=(1,))
        limits = throttle(leaderRate=9, followerRate=8, brokers=[{"id": 3, "followerRate": -1}])
        found = self.claims(running(0), ruling=limits, seen=[fallen])
        assert found["KafkaReassignmentThrottle kafka/limits"].entries == sides({"0:1", "0:2", "0:3"}, {"0:3"})

    def test_a_finished_one_claims_nothing(self):
        """Its throttle is removed before the run closes."""
        done = found(running(0), statuses={TopicPartition("t", 0): PartitionStatus(MovePhase.DONE)})
        assert self.claims(done) == {}


class TestDesired:
    def test_limits_are_those_of_the_spec_now(self):
        """A change during the run applies from the next tick on."""
        mine = Rebalance(desired())
        assert mine.desired.limits.parallel_partitions == 100
        named = {"name": "r", "namespace": "kafka", "uid": "u-1", "generation": 4}
        mine.see({"metadata": named, "spec": {"kafka": KAFKA, "execution": {"parallelPartitionCount": 7}}})
        assert mine.desired.limits.parallel_partitions == 7

    @pytest.mark.parametrize(
        ("policy", "direction"),
        [
            ({}, Direction.ROLLBACK),
            ({"deletionPolicy": "Revert"}, Direction.REVERT),
            ({"deletionPolicy": "Abandon"}, None),
        ],
    )
    def test_deletion_leads_where_the_policy_says(self, policy, direction):
        """Rollback by default."""
        mine = Rebalance(desired(metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}, **policy))
        assert direction_of(mine) is direction

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
        """Otherwise the engine would wake itself up for ever."""
        assert (desired(metadata=change).change_key != desired().change_key) is asked

    @pytest.mark.parametrize(
        ("phases", "finished"),
        [
            ([MovePhase.DONE, MovePhase.SKIPPED], True),
            ([MovePhase.DONE, MovePhase.WAITING], False),
            ([MovePhase.IN_FLIGHT], False),
            ([MovePhase.READY], False),
        ],
    )
    def test_finished_when_all_have_arrived_or_are_left_alone(self, phases, finished):
        """A waiting partition is not finished."""
        statuses = {TopicPartition("t", i): PartitionStatus(phase) for i, phase in enumerate(phases)}
        assert Statuses.of(statuses).finished is finished
