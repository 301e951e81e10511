"""A round pauses between rebalances, and computes what is long in threads: one event loop serves all clusters."""

import asyncio
import json
from collections import defaultdict
from datetime import timedelta

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.loop_or_thread import IN_THE_LOOP, OFF_THE_LOOP, where
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.overrides import THROTTLE_OVERRIDE
from kafka_rebalance.api.v1alpha1 import (
    FINALIZER,
    REASSIGNMENT_THROTTLES,
    REBALANCES,
    KafkaReassignmentThrottle,
    parse_throttle,
)
from kafka_rebalance.errors import Permanent
from kafka_rebalance.reconcile import drained_brokers, rounds
from kafka_rebalance.reconcile.act import cordoning, judges, plan_order, resources
from kafka_rebalance.reconcile.state.assessment import LeavingBroker
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.throttle import (
    cluster_throttle,
    ledger_cache,
    list_readings,
    slices,
    throttle_keeper,
    topic_lists,
)

TURN = "turn of another task"
MANY = 60


class Steps:
    """What a round does, in order, and when another task of the event loop gets its turn."""

    def __init__(self, monkeypatch):
        self.done, self._patch = [], monkeypatch.setattr

    def note(self, owner, name, step):
        """Note each call of this function as this step."""
        call = getattr(owner, name)
        self._patch(owner, name, lambda *given, **options: (self.done.append(step), call(*given, **options))[1])

    async def of(self, work):
        async def other():
            while True:
                self.done.append(TURN)
                await asyncio.sleep(0)

        self.done.clear()
        task = asyncio.create_task(other())
        await asyncio.sleep(0)
        await work
        task.cancel()
        return self.done

    def slices_of(self, *steps):
        """The steps of these names between two turns of the other task."""
        found = [[]]
        for step in self.done:
            if step == TURN:
                found.append([])
            elif step in steps:
                found[-1].append(step)
        return [some for some in found if some]


@pytest.fixture
def steps(monkeypatch):
    return Steps(monkeypatch)


def operator_with(count, **spec):
    """``count`` rebalances, each of a topic of its own; broker 4 copies slowly."""
    kafka = KafkaInMemory((1, 2, 3, 4), **{f"t{number}": [[1, 2, 3]] for number in range(count)})
    kafka.slow = {4}
    operator = OperatorInMemory(kafka)
    for number in range(count):
        at = (NOON + timedelta(seconds=number)).isoformat()
        metadata = {"name": f"r{number}", "namespace": "kafka", "uid": f"u-{number + 1}", "creationTimestamp": at}
        topics = {"include": [f"t{number}"]}
        given = {"kafka": {"bootstrapServers": "kafka:9092"}, "topics": topics, **spec}
        operator.see(operator.kube.create(REBALANCES, {"metadata": metadata, "spec": given}))
    return operator


def running_operator(count):
    return operator_with(count, brokers={"decommission": [1]}, throttle={"unlimited": True})


class TestPauses:
    async def test_of_what_is_done_for_each(self, steps):
        """A user may create thousands of resources: at most 20 of them are looked at in one slice."""
        operator = operator_with(MANY, execution={"suspend": True})
        steps.note(Rebalance, "look_at", "look")
        await steps.of(operator.engine.tick())
        assert steps.done.count("look") == MANY
        assert max(map(len, steps.slices_of("look"))) <= 20

    async def test_of_missing_permissions(self, steps):
        """Those of at most 20 are looked up in one slice, and none is searched for among the others."""
        operator = operator_with(MANY)
        steps.note(rounds, "concerning", "permissions")
        steps.note(Rebalance, "__eq__", "comparison")
        await steps.of(operator.engine.tick())
        assert steps.done.count("permissions") == MANY + 1  # and those of what others reassign
        assert max(map(len, steps.slices_of("permissions"))) <= 20
        assert "comparison" not in steps.done

    async def test_of_statuses(self, steps):
        """One status in each slice, of rebalances without a run."""
        operator = operator_with(MANY, execution={"suspend": True})
        steps.note(operator.kube, "patch_status", "status")
        await steps.of(operator.engine.tick())
        assert steps.done.count("status") == MANY
        assert max(map(len, steps.slices_of("status"))) == 1

    async def test_of_rebalances_that_run(self, steps):
        """What has moved and the status are slices of their own, for each of them."""
        operator = running_operator(5)
        await operator.until_true(lambda: len(operator.kafka.flying) == 5)
        steps.note(rounds, "advance_of", "advance")
        steps.note(operator.engine._rounds._recorder, "follow", "follow")
        await steps.of(operator.engine.tick())
        assert (steps.done.count("advance"), steps.done.count("follow")) == (5, 5)
        assert steps.slices_of("advance", "follow") == [["advance"], ["follow"]] * 5

    async def test_to_judge_each_that_runs(self, steps):
        """Each may have hundreds of partitions, and all of them may look otherwise in each reading."""
        operator = running_operator(5)
        await operator.until_true(lambda: len(operator.kafka.flying) == 5)
        steps.note(judges.Judges, "judged", "judge")
        await steps.of(operator.engine.tick())
        assert steps.done.count("judge") >= 10
        assert max(map(len, steps.slices_of("judge"))) == 1

    async def test_of_what_each_may_take_over(self, steps, monkeypatch):
        """Each is compared with all rollbacks."""
        operator = operator_with(MANY)
        compare = plan_order.renamed_from

        def noted(*given):
            for found in compare(*given):
                steps.done.append("compare")
                yield found

        monkeypatch.setattr(plan_order, "renamed_from", noted)
        await steps.of(operator.engine.tick())
        assert steps.done.count("compare") == MANY
        assert max(map(len, steps.slices_of("compare"))) <= 20

    async def test_of_the_statuses_with_a_problem(self, steps):
        """When the cluster cannot be used, each resource says so."""
        operator = operator_with(MANY, execution={"suspend": True})

        async def refuse():
            raise Permanent("KafkaAuthenticationFailed", "the brokers refused the credentials")

        operator.kafka.describe_cluster = refuse
        steps.note(operator.kube, "patch_status", "status")
        await steps.of(operator.engine.tick())
        assert steps.done.count("status") == MANY
        assert max(map(len, steps.slices_of("status"))) == 1


class TestLeavingBrokers:
    """A user may create thousands of resources that drain brokers, which the server of an inline connection claims."""

    async def drained_operator(self):
        operator = operator_with(MANY, brokers={"decommission": [4]})
        operator.kafka.slow = set()
        await operator.until_true(lambda: len(self.noted(operator)[0]) == 1)
        return operator

    def noted(self, operator):
        return [r.assessment.leaving for r in operator.engine.rebalances.values()]

    async def test_all_rebalances_share_what_is_noted(self):
        """It is noted again only after a change."""
        operator = await self.drained_operator()
        before = self.noted(operator)
        assert len({id(leaving) for leaving in before}) == 1
        await operator.round()
        assert all(leaving is before[0] for leaving in self.noted(operator))

    async def test_they_are_noted_in_slices(self, steps):
        operator = await self.drained_operator()
        steps.note(drained_brokers, "drain_of", "drain")
        steps.note(drained_brokers, "replace", "change")
        steps.note(LeavingBroker, "__eq__", "comparison")
        await steps.of(operator.engine.tick())
        assert steps.done.count("drain") == MANY
        assert steps.done.count("comparison") <= MANY
        assert max(map(len, steps.slices_of("drain"))) <= 20
        assert "change" not in steps.done


class Counted(dict):
    """Counts how often all resources are gone through."""

    gone_through = 0

    def values(self):
        self.gone_through += 1
        return super().values()


class TestRunning:
    """Up to 200 of each namespace run, beside thousands of resources without a run."""

    async def test_all_resources_are_not_gone_through_for_each(self):
        """The number of times does not grow with the number of those that run."""
        operator = running_operator(10)
        await operator.until_true(lambda: len(operator.kafka.flying) == 10)
        parts = (operator.engine._rounds._judges, operator.engine._rounds._sending)
        for part in parts:
            part._rebalances = Counted(operator.engine.rebalances)
        await operator.engine.tick()
        assert all(0 < part._rebalances.gone_through <= 2 for part in parts)

    async def test_one_that_is_gone_before_its_turn_cordons_nothing(self, monkeypatch):
        """It would never be uncordoned."""
        operator, kept = running_operator(2), []
        await operator.until_true(lambda: len(operator.kafka.flying) == 2)

        async def keep(_cordons, rebalance, *_, **_options):
            kept.append(rebalance.uid)
            operator.engine.rebalances.pop("u-2", None)

        monkeypatch.setattr(cordoning.Cordons, "keep", keep)
        await operator.engine.tick()
        assert kept == ["u-1"]


class TestProgress:
    @pytest.mark.parametrize(("many", "place"), [(5, OFF_THE_LOOP), (6, IN_THE_LOOP)])
    async def test_of_many_copies_is_measured_off_the_loop(self, monkeypatch, many, place):
        """What each has copied is looked up in each round."""
        kafka, places = KafkaInMemory((1, 2, 3, 4), t=[[1, 2, 3]] * 5), set()
        operator, kafka.slow, measure = OperatorInMemory(kafka), {4}, rounds.advance_of

        def measured(*given):
            places.add(where())
            return measure(*given)

        operator.apply(brokers={"decommission": [1]}, throttle={"unlimited": True})
        await operator.until_true(lambda: len(kafka.flying) == 5)
        monkeypatch.setattr(rounds, "advance_of", measured)
        monkeypatch.setattr(rounds, "MANY", many)
        await operator.round()
        assert places == {place}


def throttled_operator(count, *, override=None):
    """``count`` throttle resources with rates of single brokers, and no rebalance."""
    operator = OperatorInMemory(KafkaInMemory((1, 2, 3, 4), t=[[1, 2, 3]]))
    annotations = {THROTTLE_OVERRIDE: json.dumps(override)} if override else {}
    brokers = [{"id": broker, "leaderRate": "1Mi"} for broker in range(10)]
    for number in range(count):
        at = (NOON + timedelta(seconds=number)).isoformat()
        metadata = {"name": f"t{number}", "namespace": "kafka", "uid": f"t-{number}", "creationTimestamp": at}
        given = {"kafka": {"bootstrapServers": "kafka:9092"}, "brokers": brokers}
        body = operator.kube.create(
            REASSIGNMENT_THROTTLES, {"metadata": metadata | {"annotations": annotations}, "spec": given}
        )
        operator.engine.see_throttles({f"t-{number}": parse_throttle(body)})
    return operator


class TestThrottleResources:
    """A user may create thousands of them, each with thousands of rates."""

    async def test_statuses_are_built_in_slices(self, steps):
        """Of those of the first round, five in each slice."""
        operator = throttled_operator(MANY)
        steps.note(resources, "build_throttle_status", "status")
        await steps.of(operator.engine.tick())
        assert steps.done.count("status") == MANY
        assert max(map(len, steps.slices_of("status"))) <= 5

    async def test_a_status_is_built_again_only_after_a_change(self, steps):
        """Each says which resource is older, which does not change from round to round."""
        operator = throttled_operator(MANY)
        for _ in range(3):
            await operator.round()
        steps.note(resources, "build_throttle_status", "status")
        await steps.of(operator.engine.tick())
        assert steps.done.count("status") <= 1
        operator.engine.throttles.pop("t-0")
        await steps.of(operator.engine.tick())
        assert steps.done.count("status") == MANY - 1
        for _ in range(60):  # a new message alone is written after some time
            await operator.round()
        status = operator.kube.resources[REASSIGNMENT_THROTTLES, "kafka", "t2"]["status"]
        assert status["conditions"][0]["message"] == "kafka/t1 is older: its rates hold instead"

    async def test_overrides_are_looked_at_in_slices(self, steps):
        """All of them may end at the same time."""
        until = NOON + timedelta(minutes=1)
        operator = throttled_operator(MANY, override={"leaderRate": "2Mi", "until": until.isoformat()})
        await operator.round()
        operator.clock.at = until
        steps.note(KafkaReassignmentThrottle, "as_of", "override")
        await steps.of(operator.engine.tick())
        assert steps.done.count("override") == MANY
        assert max(map(len, steps.slices_of("override"))) <= 5

    async def test_deletions_are_looked_at_in_slices(self, steps):
        """Each asks whether everything that it limited is restored."""
        operator = throttled_operator(MANY)
        for uid, found in list(operator.engine.throttles.items()):
            deleted = {"deletion_timestamp": NOON, "finalizers": (FINALIZER,)}
            metadata = found.metadata.model_copy(update=deleted)
            operator.engine.throttles[uid] = found.model_copy(update={"metadata": metadata})
        steps.note(cluster_throttle.ClusterThrottle, "_released", "deletion")
        await steps.of(operator.engine.tick())
        assert steps.done.count("deletion") == MANY
        assert max(map(len, steps.slices_of("deletion"))) <= 5


WORK = [
    (cluster_throttle, "claims_of"),
    (throttle_keeper, "combine"),
    (throttle_keeper.ThrottleKeeper, "_to_list"),
    (throttle_keeper.ThrottleKeeper, "_appendable"),
    (throttle_keeper.ThrottleKeeper, "_uncovered"),
    (list_readings, "_readings_of"),
    (topic_lists, "stale_entries"),
    (ledger_cache, "_equal"),
    (ledger_cache, "_written"),
]
"""What grows with the number of partitions that move."""


class TestThrottle:
    """The throttle of many partitions in flight is computed in a thread, that of few is not."""

    @pytest.fixture
    def computed(self, monkeypatch):
        """By function, where it has run."""
        threads = defaultdict(set)

        def noted(name, work):
            def call(*given, **options):
                threads[name].add(where())
                return work(*given, **options)

            return call

        for owner, name in WORK:
            monkeypatch.setattr(owner, name, noted(name, getattr(owner, name)))
        return threads

    @pytest.mark.parametrize("count", [5, slices.MANY + 10])
    async def test_of_own_partitions(self, computed, count):
        """Also the ledger is encoded there, when it is written before the lists."""
        kafka = KafkaInMemory((1, 2, 3, 4), **{f"t{number}": [[1, 2, 3]] for number in range(count)})
        kafka.slow = {4}
        operator = OperatorInMemory(kafka)
        execution = {"parallelPartitionCount": count, "maxPerBroker": {"in": count, "out": count}}
        rates = {"leaderRate": "1Mi", "followerRate": "1Mi"}
        operator.apply(brokers={"decommission": [1]}, throttle=rates, execution=execution)
        await operator.until_true(lambda: len(kafka.flying) == count)
        few = count <= slices.MANY
        assert (OFF_THE_LOOP in computed.pop("_written")) is not few
        computed.clear()
        for _ in range(40):  # the lists are read back now and then
            await operator.round()
        assert computed == {name: {IN_THE_LOOP if few else OFF_THE_LOOP} for _, name in WORK if name != "_written"}
