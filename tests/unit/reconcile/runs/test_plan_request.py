"""The planner's request, built from a spec and the live cluster."""

from dataclasses import replace

import pytest

from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.execution.partition_move import PartitionMove
from kafka_rebalance.kafka.ports import ClusterInfo
from kafka_rebalance.model.topology import Broker, BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.reconcile.runs.assignment_lists import AssignmentLists
from kafka_rebalance.reconcile.runs.known_loads import KnownLoads
from kafka_rebalance.reconcile.runs.plan_request import PlanInputs, make_plan, refuse_stale
from kafka_rebalance.reconcile.runs.solving import draft_memory
from kafka_rebalance.reconcile.state.selection import pinned_topics, select

INFO = ClusterInfo("c", {BrokerId(b): Broker(BrokerId(b)) for b in range(1, 5)})


def spec(**parts):
    metadata = {"name": "r", "namespace": "n", "uid": "u"}
    return parse_rebalance({"metadata": metadata, "spec": {"kafka": {"bootstrapServers": "k:1"}, **parts}}).spec


def cluster(*lists, topic="t", offline=(), busy=()):
    states = {}
    for number, row in enumerate(lists):
        tp, ids = TopicPartition(topic, number), replicas_of(*row)
        leader = None if number in offline else ids[0]
        adding = (BrokerId(4),) if number in busy else ()
        states[tp] = PartitionState(tp, "id", ids, frozenset(ids), leader, adding=adding)
    return states


async def planned(asked_for, states, asked=PlanInputs()):  # noqa: B008 - frozen
    selected = select(asked_for, states)
    asked = replace(asked, pinned=pinned_topics(asked_for, selected))
    made = await make_plan(asked_for, INFO, selected, KnownLoads(), asked, None, draft_memory("a"))
    return {str(p.tp): list(p.target) for p in made.partitions}, made


class TestDeadBrokers:
    @pytest.mark.parametrize(
        ("replicas", "said"),
        [([1, 9], "broker 9 holds replicas and is"), ([1, 10, 9], "brokers 9, 10 hold replicas and are")],
    )
    async def test_a_plan_waits_for_them(self, replicas, said):
        """The message names the brokers, and the field for those that do not return."""
        with pytest.raises(Transient) as waits:
            await planned(spec(), cluster(replicas))
        assert waits.value.reason == "ClusterUnhealthy"
        assert waits.value.message == (
            f"{said} not live: the plan waits for the return. List brokers that are gone for good in "
            "spec.brokers.decommission"
        )


class TestStrategies:
    async def test_given_lists(self):
        """The lists of the ConfigMap; a partition that another tool is moving is skipped."""
        lists = {TopicPartition("t", n): replicas_of(3, 4) for n in range(2)}
        asked_for = spec(strategy="Assignment", assignment={"configMapRef": {"name": "a"}})
        changed, made = await planned(asked_for, cluster([1, 2], [1, 2], busy=[1]), PlanInputs(AssignmentLists(lists)))
        assert changed == {"t-0": [3, 4]}
        assert [(str(s.tp), s.reason) for s in made.skipped] == [("t-1", "ForeignReassignment")]

    async def test_lists_of_topics_that_are_not_selected(self):
        """A topic that does not exist, or that the filter excludes, is refused by name."""
        asked_for = spec(strategy="Assignment", assignment={"configMapRef": {"name": "a"}}, topics={"include": ["x"]})
        with pytest.raises(Refused, match="t-0"):
            await planned(
                asked_for, cluster([1, 2]), PlanInputs(AssignmentLists({TopicPartition("t", 0): replicas_of(3, 4)}))
            )

    async def test_forced_moves_only(self):
        """Only replicas on the drained broker move; the broker with the fewest leaders takes the leadership."""
        asked_for = spec(strategy="ForcedMovesOnly", brokers={"decommission": [1]})
        changed, _ = await planned(asked_for, cluster([1, 2], [2, 3], [2, 3]))
        assert changed == {"t-0": [4, 2]}

    async def test_pinned_topics(self):
        """They stay, and the others are balanced around them."""
        states = cluster([1], [1], topic="audit") | cluster([1], [2], [3], [4])
        changed, _ = await planned(spec(topics={"pinned": ["aud.*"]}), states)
        assert changed.keys() == {"t-0"}

    async def test_min_insync(self):
        """A plan never goes below the topic's min.insync.replicas."""
        with pytest.raises(Refused) as refused:
            await planned(spec(replicationFactor=1), cluster([1, 2]), PlanInputs(min_insync={"t": 2}))
        assert refused.value.reason == "BelowMinInsyncReplicas"

    async def test_minimum_gain(self):
        """An empty plan with a reason; without any possible gain there is no reason."""
        changed, made = await planned(spec(goals={"minimumGain": 60}), cluster([1], [1], [2], [3]))
        assert (changed, made.reason) == ({}, "GainTooSmall")
        changed, made = await planned(spec(goals={"minimumGain": 60}), cluster([1], [2], [3], [4]))
        assert (changed, made.reason) == ({}, "")

    @pytest.mark.parametrize(
        ("asked_for", "reason"),
        [
            ({"goals": {"maxReplicaMoves": 0}}, "BudgetReached"),
            ({"topics": {"pinned": ["t"]}}, "Pinned"),
            ({"strategy": "PreferredLeaders"}, "NotMoved"),
        ],
    )
    async def test_what_stays_on_a_broker_to_be_emptied_is_named(self, asked_for, reason):
        """Otherwise the run would plan again for it for ever."""
        _, made = await planned(spec(brokers={"decommission": [1]}, **asked_for), cluster([1], [2]))
        assert [(str(s.tp), s.reason) for s in made.skipped] == [("t-0", reason)]

    async def test_it_names_the_brokers_to_empty(self):
        """Also those without a replica: the hash of the plan covers them."""
        states = cluster([1, 2], [2, 3])
        _, made = await planned(spec(brokers={"decommission": [4, 1]}), states)
        assert made.decommission == (1, 4)
        _, another = await planned(spec(brokers={"decommission": [1], "include": [2, 3]}), states)
        assert (another.partitions, another.hash != made.hash) == (made.partitions, True)


class TestStaleMetadata:
    ERRAND = PartitionMove(TopicPartition("t", 0), "id", replicas_of(1), replicas_of(1), replicas_of(1, 2, 3))
    MOVED = replace(ERRAND, target=replicas_of(2))
    TP = ERRAND.tp

    def test_a_copy_too_many(self):
        """After a cancel that metadata does not show yet."""
        with pytest.raises(Transient, match="t-0 still shows"):
            refuse_stale([self.MOVED], cluster([1, 2]), cluster([1]), ())

    def test_a_copy_too_many_that_is_taken_back(self):
        """Both readings show it, and the rounds are about to drop it."""
        with pytest.raises(Transient, match="t-0 still shows"):
            refuse_stale([self.MOVED], cluster([1, 2]), cluster([1, 2]), ())

    @pytest.mark.parametrize("known", [[[1]], [[2, 1]], []], ids=["one", "another order", "none"])
    def test_a_copy_too_many_that_only_one_reading_shows(self, known):
        """What the rounds leave alone is what they have read."""
        with pytest.raises(Transient, match="t-0 still shows"):
            refuse_stale([self.MOVED], cluster([1, 2]), cluster(*known), {self.TP})

    def test_a_copy_too_many_that_stays(self):
        """The rounds cannot drop it, so it is no old metadata."""
        refuse_stale([self.MOVED], cluster([1, 2]), cluster([1, 2]), {self.TP})

    def test_a_copy_in_flight_above_the_replication_factor(self):
        """The plan starts from the list without it, and what the rounds have read without it is the same."""
        copy = {self.TP: replace(cluster([1, 2, 3])[self.TP], adding=replicas_of(3))}
        refuse_stale([self.MOVED], cluster([1, 2]), copy, ())

    def test_a_drop_in_flight(self):
        """Kafka may never complete it beside dead brokers."""
        drop = {self.TP: replace(cluster([1, 2])[self.TP], removing=replicas_of(2))}
        refuse_stale([self.MOVED], cluster([1, 2]), drop, ())

    @pytest.mark.parametrize("known", [(1, 3), (2, 1, 3)])
    def test_a_copy_in_flight_on_another_list(self, known):
        """One of the readings is old."""
        copy = {self.TP: replace(cluster(known)[self.TP], adding=replicas_of(3))}
        with pytest.raises(Transient, match="t-0 still shows"):
            refuse_stale([self.MOVED], cluster([1, 2]), copy, ())

    def test_a_drop_in_flight_that_the_plan_does_not_leave_out(self):
        """It is not one that stays."""
        drop = {self.TP: replace(cluster([1, 2])[self.TP], removing=replicas_of(2))}
        with pytest.raises(Transient, match="t-0 still shows"):
            refuse_stale([self.MOVED], drop, drop, ())

    def test_a_topic_that_was_created_again(self):
        """Its list does not change by reading it again."""
        refuse_stale([replace(self.MOVED, topic_id="earlier")], cluster([1, 2]), cluster([1, 2]), ())

    @pytest.mark.parametrize("present", [(1, 2), (1, 2, 3)])
    def test_copies_that_a_larger_replication_factor_asked_for(self, present):
        """They are meant to stay, so another plan can start from them."""
        refuse_stale([self.ERRAND], cluster(present), cluster(present), ())


class TestOfflinePolicy:
    async def test_skip(self):
        """A partition without a leader is named and skipped."""
        _, made = await planned(spec(), cluster([1, 2], [1, 2], offline=[1]))
        assert [(str(s.tp), s.reason) for s in made.skipped] == [("t-1", "NoLeader")]

    async def test_refuse(self):
        """There is no plan while one is offline."""
        with pytest.raises(Refused, match="t-1") as refused:
            await planned(spec(offlinePolicy="Refuse"), cluster([1, 2], [1, 2], offline=[1]))
        assert refused.value.reason == "OfflinePartitions"
