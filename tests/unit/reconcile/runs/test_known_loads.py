"""Sizes come from the brokers, or from the model if a broker does not answer; and the behaviour without either."""

import pytest
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.model.goals import LoadGoal, LoadResource
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition, replicas_of
from kafka_rebalance.planning.problem.request import Goals
from kafka_rebalance.reconcile.runs.known_loads import KnownLoads, known_loads, live_sizes, refuse_unknown_sizes
from kafka_rebalance.reconcile.runs.plan_request import PlanInputs, make_plan
from kafka_rebalance.reconcile.runs.solving import draft_memory

T0 = TopicPartition("t", 0)


def state(*replicas, leader=1, in_sync=None, topic_id="t-id-1"):
    ids = replicas_of(*replicas)
    in_sync = frozenset(ids if in_sync is None else replicas_of(*in_sync))
    return PartitionState(T0, topic_id, ids, in_sync, None if leader is None else BrokerId(leader))


def model(**load):
    return LoadModel("LoadModel", None, {T0: PartitionLoad(**load)}, "c")


def size(found, live, stored=None):
    """``live``: bytes by broker that answers."""
    answered = {BrokerId(b): {} if held is None else {T0: held} for b, held in live.items()}
    return known_loads(answered, stored, {T0: found}).sizes.get(T0)


class TestKnownLoads:
    @pytest.mark.parametrize(
        ("found", "live", "new_copy", "each"),
        [
            (state(1, 2, 3), {1: 500, 2: 700, 3: 20}, 500, (500, 700, 20)),
            (state(1, 2, 3, in_sync=[1, 2]), {2: 480, 3: 900}, 480, (9, 480, 900)),
            (state(1, 2, 3, in_sync=[1]), {2: 480}, 10, (9, 480, 8)),
            (state(1, 2, 3), {1: None, 2: None, 3: None}, 10, (9, 10, 8)),
            (state(1, 4), {}, 10, (9, 10)),
        ],
        ids=["leader", "leader-silent", "only-out-of-sync", "log-dirs-offline", "nobody-answers"],
    )
    def test_live_sizes_win_over_the_models(self, found, live, new_copy, each):
        """The leader's, else the largest in sync, else the model's; per replica what its broker says."""
        stored = model(size_bytes=10, replica_bytes={BrokerId(1): 9, BrokerId(3): 8})
        assert size(found, live, stored) == (new_copy, each)

    def test_a_topic_that_was_created_anew(self):
        """The model's size of an earlier topic of the same name does not count."""
        stored = model(size_bytes=10, topic_id="t-id-0")
        assert size(state(1, 2), {}, stored) is None
        assert size(state(1, 2, leader=None, in_sync=[]), {2: 480}, stored) == (480, (480, 480))

    def test_what_nobody_knows(self):
        """It is absent, which is not the same as empty."""
        assert size(state(1, 2), {}) is None
        assert size(state(1, 2), {1: 0, 2: 0}) == (0, (0, 0))

    @pytest.mark.parametrize(("stored", "source"), [(None, "LogDirs"), (model(size_bytes=10), "LoadModel")])
    def test_the_source(self, stored, source):
        """Said in the status: whether a load model was used."""
        assert known_loads({}, stored, {}).source == source

    def test_a_broker_with_several_log_dirs(self):
        """Each replica is in one of them; a copy that is moved between them counts once."""
        assert live_sizes({BrokerId(1): (LogDir("/a", {T0: 5}), LogDir("/b", {}, {T0: 3}))}) == {1: {T0: 5}}


class TestThePlan:
    async def test_counts_live_bytes(self):
        """Yesterday the model saw 10 bytes; the leader has 500 now."""
        metadata = {"name": "r", "namespace": "n", "uid": "u"}
        body = {"kafka": {"bootstrapServers": "k:1"}, "brokers": {"include": [2], "decommission": [1]}}
        spec = parse_rebalance({"metadata": metadata, "spec": body}).spec
        kafka = KafkaInMemory([1, 2], size=500, t=[[1]])
        loads = known_loads(live_sizes(await kafka.log_dirs(kafka.brokers)), model(size_bytes=10), kafka.states)
        made = await make_plan(spec, kafka.info, kafka.states, loads, PlanInputs(), None, draft_memory("a"))
        assert made.data_to_move_bytes == 500

    async def test_does_without_a_model_that_may_not_be_used(self):
        """Counts and live sizes need none; the operator's log says why."""
        refused = Refused("LoadModelStale", "1d1h ago")
        operator = OperatorInMemory(KafkaInMemory([1, 2, 3], t=[[1], [1], [2]]), refused)
        operator.apply()
        await operator.until("Succeeded")
        assert operator.status["plan"]["dataSource"] == "LogDirs"


class TestGoalsThatNeedSizes:
    @pytest.mark.parametrize(
        ("goals", "needs"),
        [
            (Goals(max_data_to_move=1), "goals.maxDataToMove"),
            (Goals(load=(LoadGoal(LoadResource.DISK),)), "goals.load by Disk"),
        ],
    )
    def test_are_told_that_they_are_missing(self, goals, needs):
        """With the goal that needs them."""
        with pytest.raises(Transient, match=needs):
            refuse_unknown_sizes(goals, KnownLoads(), {T0: state(1, 2)})

    def test_others_do_without(self):
        """Counts and rates need no sizes."""
        refuse_unknown_sizes(Goals(load=(LoadGoal(LoadResource.BYTES_IN),)), KnownLoads(), {T0: state(1, 2)})


class TestBudgetOfBytes:
    async def test_topics_newer_than_the_model_count(self):
        """Twelve moves would balance these brokers; the budget is enough for two."""
        kafka = KafkaInMemory([1, 2, 3, 4], size=1000, t=[(1, 2)] * 6, u=[(2, 1)] * 6)
        loads = {TopicPartition("t", number): PartitionLoad(1000) for number in range(6)}
        operator = OperatorInMemory(kafka, LoadModel("LoadModel", None, loads, "c"))
        operator.apply(goals={"maxDataToMove": 2000})
        await operator.until("Succeeded")
        assert (operator.status["plan"]["replicaMoves"], operator.status["plan"]["dataToMove"]) == (2, 2000)

    async def test_sizes_that_nobody_tells(self):
        """Reported and retried; a partition without a leader is not moved, so its size is not needed."""
        kafka = KafkaInMemory([1, 2, 3], t=[(1, 2)] * 3, u=[(1, 2)])
        kafka.lead("u", 0, None)
        told = {"t": False, "u": False}

        async def log_dirs(brokers):
            sizes = {tp: 100 for tp in kafka.states if told[tp.topic]}
            return Answers({broker: (LogDir("/data", sizes),) for broker in brokers})

        kafka.log_dirs = log_dirs
        operator = OperatorInMemory(kafka)
        operator.apply(goals={"maxDataToMove": 200})
        assert "4 partitions" not in await operator.until("SizesUnknown")
        assert (kafka.altered, "3 partitions (t-0, t-1, t-2)" in operator.message) == ([], True)
        told["t"] = True
        await operator.until("Succeeded")


class TestRates:
    @pytest.mark.parametrize(("topic_id", "said"), [("t-id-1", True), ("t-id-0", False)])
    async def test_of_an_earlier_topic_of_the_name(self, topic_id, said):
        """The operator that plans and the next one do not report that the throttle is below the produce rate."""
        loads = {TopicPartition("t", n): PartitionLoad(100, 5000.0, topic_id=topic_id) for n in range(4)}
        kafka = KafkaInMemory([1, 2, 3], t=[[1], [1], [1], [2]])
        kafka.slow = {3}
        operator = OperatorInMemory(kafka, LoadModel("LoadModel", None, loads, "c"))
        operator.apply(throttle={"leaderRate": 1000, "followerRate": 1000})
        await operator.until("Rebalancing", "ThrottleTooLow")
        for start in (lambda: None, operator.restart):
            start()
            await operator.round()
            assert bool(operator.rebalance.assessment.advance.too_slow) is said
