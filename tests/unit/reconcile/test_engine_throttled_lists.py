"""Throttled lists of large topics: Kafka limits the length of a config value, so partitions take turns."""

from tests.fakes.configs_in_memory import LONGEST_BYTES
from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, parse_throttle
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_LIST, LEADER_LIST
from kafka_rebalance.kafka.ports import Answers, ConfigOp
from kafka_rebalance.model.topology import BrokerId, TopicPartition

PARTITIONS = 2000
BEFORE, AFTER = [1001, 1002, 1003], [1001, 1002, 1006]
ALL_AT_ONCE = {"parallelPartitionCount": PARTITIONS}


class Kafka(KafkaInMemory):
    """Six brokers with ids of four digits. ``longest``: the bytes of the longest list; ``sent``: all changes.

    ``lists_denied``: topics whose lists of throttled replicas cannot be read.
    """

    lists_denied = frozenset()

    def __init__(self, **topics):
        super().__init__(range(1001, 1007), **topics)
        self.longest, self.sent = 0, []

    async def topic_configs(self, topics, names):
        denied = self.lists_denied & set(topics) if set(names) & set(NAMES) else set()
        found = await super().topic_configs([topic for topic in topics if topic not in denied], names)
        return Answers(dict(found), {**found.errors, **self._errors(denied)})

    async def alter_topic_configs(self, changes):
        self.sent += [change for wanted in changes.values() for change in wanted]
        answers = await super().alter_topic_configs(changes)
        assert all(answer is None for answer in answers.values())
        self.longest = max(self.longest, *(len(self.values.get((topic, n), "")) for topic in changes for n in NAMES))
        return answers


NAMES = (LEADER_LIST, FOLLOWER_LIST)


def operator(**topics):
    return OperatorInMemory(Kafka(**topics))


def limit(op, **spec):
    metadata = {"name": "limits", "namespace": "kafka", "uid": "u-t", "creationTimestamp": NOON.isoformat()}
    spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "leaderRate": "50Mi", "followerRate": "50Mi", **spec}
    body = op.kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": spec})
    op.engine.see_throttles({"u-t": parse_throttle(body)})


def ready(op):
    status = op.kube.resources[REASSIGNMENT_THROTTLES, "kafka", "limits"]["status"]
    found = next(c for c in status["conditions"] if c["type"] == "Ready")
    return found["reason"], found["message"]


def others_move(kafka, topic):
    """Another tool moves each partition of the topic to broker 1006, which is slow."""
    kafka.slow = {1006}
    for tp, state in list(kafka.states.items()):
        if tp.topic == topic:
            kafka._alter(tp, (BrokerId(1006), *state.replicas[1:]))


class TestRebalance:
    async def test_a_large_topic_moves_completely(self):
        """As many partitions as the lists have room for; the others wait and say why; in the end nothing is left."""
        op = operator(big=[BEFORE] * PARTITIONS)
        op.kafka.slow = {1006}
        op.assign(*(("big", number, AFTER) for number in range(PARTITIONS)), execution=ALL_AT_ONCE)
        await op.until_true(lambda: op.kafka.flying)
        for _ in range(3):
            await op.round()
        flying = len(op.kafka.flying)
        assert 500 < flying < 1000
        assert "ThrottleListFull" in op.message
        assert f"({PARTITIONS - flying}, e.g." in op.message
        turns = 0
        while op.kafka.flying:
            turns += 1
            op.kafka.arrive()
            op.kafka.slow = {1006}
            for _ in range(4):
                await op.round()
        assert turns == 3
        await op.until("Succeeded")
        assert op.kafka.lists("big") == [AFTER] * PARTITIONS
        assert op.kafka.values == {}
        assert op.kafka.longest <= 30_000
        assert "*" not in {change.value for change in op.kafka.sent}

    async def test_another_topic_does_not_wait(self):
        """Partitions that do not fit take no place in parallelPartitionCount."""
        op = operator(big=[BEFORE] * PARTITIONS, small=[BEFORE] * 10)
        op.kafka.slow = {1006}
        rows = [(topic, n, AFTER) for topic, count in (("big", PARTITIONS), ("small", 10)) for n in range(count)]
        op.assign(*rows, execution={"parallelPartitionCount": 1000})
        await op.until_true(lambda: "small-9" in op.kafka.flying)
        assert len(op.kafka.flying) < 1000

    async def test_at_full_speed_nothing_waits(self):
        """Without a rate there are no lists."""
        op = operator(big=[BEFORE] * PARTITIONS)
        op.kafka.slow = {1006}
        op.assign(
            *(("big", number, AFTER) for number in range(PARTITIONS)),
            execution=ALL_AT_ONCE,
            throttle={"unlimited": True},
        )
        await op.until_true(lambda: len(op.kafka.flying) == PARTITIONS)
        assert op.kafka.sent == []

    async def test_nothing_is_appended_to_a_list_that_cannot_be_read(self):
        """Its free room is not known; listed entries stay, and the status has the reason."""
        op = operator(big=[BEFORE] * 300)
        theirs = ",".join(f"{number}:1001" for number in range(5000, 7700))
        op.kafka.values |= dict.fromkeys((("big", name) for name in NAMES), theirs)
        op.kafka.slow = {1006}
        rows = [("big", number, AFTER) for number in range(300)]
        op.assign(*rows, execution={"parallelPartitionCount": 5}, throttle={"leaderRate": "1Mi", "followerRate": "1Mi"})
        await op.until_true(lambda: len(op.kafka.flying) == 5)
        before = {name: op.kafka.values["big", name] for name in NAMES}
        op.kafka.lists_denied, op.kafka.sent = {"big"}, []
        op.edit(execution=ALL_AT_ONCE)
        for _ in range(8):
            await op.round()
        assert len(op.kafka.flying) == 5
        assert {name: op.kafka.values["big", name] for name in NAMES} == before
        assert op.kafka.sent == []
        assert "not allow us to describe big" in op.message
        op.kafka.lists_denied = set()
        await op.until_true(lambda: len(op.kafka.flying) > 5)
        assert op.kafka.longest <= 30_000

    async def test_a_full_list_that_cannot_be_read(self):
        """That it cannot be read is the reason: how full it is, is not known. For another topic it is still said."""
        op = operator(big=[BEFORE] * PARTITIONS, full=[BEFORE])
        op.kafka.values["full", LEADER_LIST] = ",".join(f"{number}:1001" for number in range(5000, 8100))
        op.kafka.slow = {1006}
        rows = [("big", number, AFTER) for number in range(PARTITIONS)]
        op.assign(*rows, ("full", 0, AFTER), execution=ALL_AT_ONCE)
        await op.until_true(lambda: len(op.kafka.flying) > 500)
        await op.until_true(lambda: "ThrottleListFull (1" in op.message and "e.g. big-" in op.message)
        op.kafka.lists_denied = {"big"}
        await op.until_true(lambda: "ThrottleListFull (1, e.g. full-0" in op.message)
        assert "topic big (reading): Kafka does not allow us to describe big" in op.message
        op.kafka.lists_denied = {"big", "full"}
        for _ in range(8):
            await op.round()
        assert "ThrottleListFull" not in op.message
        assert "(reading): Kafka does not allow us to describe" in op.message

    async def test_entries_of_others_leave_no_room(self):
        """Nothing starts, and the reason is said, until others take them out; theirs stay."""
        op = operator(big=[BEFORE] * 10)
        theirs = ",".join(f"{number}:1001" for number in range(5000, 8100))
        op.kafka.values["big", LEADER_LIST] = theirs
        op.assign(("big", 0, AFTER))
        await op.until_true(lambda: "ThrottleListFull" in (op.message or ""))
        for _ in range(12):
            await op.round()
            assert op.kafka.values["big", LEADER_LIST] == theirs
        assert "ThrottleListFull" in op.message
        assert op.kafka.altered == []
        op.kafka.values["big", LEADER_LIST] = "7:7"
        await op.until("Succeeded")
        assert op.kafka.values == {("big", LEADER_LIST): "7:7"}


class TestOtherTools:
    async def test_only_what_fits_is_listed(self):
        """The followers' side of all of them, and it is said which are not throttled at both ends."""
        op = operator(big=[BEFORE] * PARTITIONS)
        limit(op)
        await op.round()
        others_move(op.kafka, "big")
        for _ in range(4):
            await op.round()
        follower = op.kafka.values["big", FOLLOWER_LIST].split(",")
        assert len(follower) == PARTITIONS
        reason, message = ready(op)
        assert reason == "ThrottleListFull"
        left = PARTITIONS - len(op.kafka.values["big", LEADER_LIST].split(",")) // 4
        assert f"{left} only where they arrive, of topic big" in message
        assert op.kafka.longest <= 30_000
        op.kafka.arrive()
        for _ in range(4):
            await op.round()
        assert op.kafka.values == {}
        assert ready(op)[0] == "NothingToThrottle"

    async def test_a_rebalance_beside_them(self):
        """It waits for room in the lists of that topic, and starts when theirs have arrived."""
        op = operator(big=[BEFORE] * PARTITIONS, small=[BEFORE])
        limit(op)
        others_move(op.kafka, "big")
        last = TopicPartition("big", PARTITIONS - 1)
        await op.kafka.alter_reassignments({last: None})
        for _ in range(3):
            await op.round()
        op.assign((*last, AFTER), ("small", 0, AFTER))
        await op.until_true(lambda: "small-0" in op.kafka.flying)
        for _ in range(8):
            await op.round()
        assert str(last) not in op.kafka.flying
        assert f"ThrottleListFull (1, e.g. {last}" in op.message
        op.kafka.arrive()
        await op.until("Succeeded")
        for _ in range(3):
            await op.round()
        assert op.kafka.values == {}

    async def test_what_an_earlier_version_recorded_is_no_obstacle(self):
        """Its ledger may hold more than Kafka takes: nothing too long is sent, and in the end nothing is left."""
        op = operator(big=[BEFORE] * PARTITIONS)
        limit(op)
        others_move(op.kafka, "big")
        await op.round()
        await op.round()
        entries = op.records.kept["entries"]["big"]
        entries[LEADER_LIST] = sorted(f"{n}:{b}" for n in range(PARTITIONS) for b in (1001, 1002, 1003, 1006))
        op.restart()
        op.engine.see_throttles({"u-t": parse_throttle(op.kube.resources[REASSIGNMENT_THROTTLES, "kafka", "limits"])})
        for _ in range(8):
            await op.round()
        assert 20_000 < len(op.kafka.values["big", LEADER_LIST]) <= 30_000
        assert all(len(change.value) <= LONGEST_BYTES for change in op.kafka.sent if change.op is not ConfigOp.DELETE)
        op.kafka.arrive()
        for _ in range(8):
            await op.round()
        assert op.kafka.values == {}
