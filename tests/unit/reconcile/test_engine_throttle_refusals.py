"""A throttle that the brokers or KIP-542 refuse: nothing starts, the status says why, and there is a way out."""

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.api.v1alpha1 import REASSIGNMENT_THROTTLES, parse_throttle
from kafka_rebalance.execution.reassignment_throttle import FOLLOWER_RATE, LEADER_RATE, REPLICATION_THROTTLE
from kafka_rebalance.model.topology import BrokerId

BROKERS = range(1, 7)


def operator():
    return OperatorInMemory(KafkaInMemory(BROKERS, t=[[1, 2], [3, 4]]))


class TestNotAllowed:
    """Brokers whose configs we may not alter, as with most providers of managed Kafka."""

    async def test_the_default_throttle_is_enough_to_stop_it(self):
        """The state has the answer; without a rate the copy starts, and nothing is left."""
        op = operator()
        op.kafka.refusing, op.kafka.refusal = set(BROKERS), "CLUSTER_AUTHORIZATION_FAILED: denied"
        op.assign(("t", 0, [1, 5]))
        message = await op.until("ThrottleNotAllowed")
        assert message.startswith("brokers 1, 2, 5 do not allow to set a throttle rate (CLUSTER_AUTHORIZATION_FAILED")
        assert op.condition("ThrottleApplied")["reason"] == "ThrottleNotAllowed"
        assert op.kafka.altered == []
        op.edit(throttle={"unlimited": True})
        await op.until("Succeeded")
        assert op.kafka.values == {}

    async def test_it_goes_on_when_the_right_is_there(self):
        """Within a minute: each broker is asked ever more seldom."""
        op = operator()
        op.kafka.refusing, op.kafka.refusal = {5}, "POLICY_VIOLATION: not here"
        op.assign(("t", 0, [1, 5]))
        await op.until("ThrottleNotAllowed")
        op.kafka.refusing = set()
        await op.until("Succeeded")
        assert op.kafka.values == {}


class TestLeftover:
    """Kafka's own tool has left a rate on every broker."""

    async def test_it_is_said_once(self):
        """With all brokers, and what to do."""
        op = operator()
        op.kafka.values = {(BrokerId(b), name): "1000" for b in BROKERS for name in (LEADER_RATE, FOLLOWER_RATE)}
        left = dict(op.kafka.values)
        op.assign(("t", 0, [1, 5]), ("t", 1, [3, 6]), throttle={"leaderRate": 5000, "followerRate": 5000})
        message = await op.until("ReplicationThrottleLower")
        assert message.startswith("6 brokers (1, 2, 3 and 3 more) already have a replication throttle of 1000 B/s")
        assert message.count("1000 B/s") == 1
        assert "doctor --clear-throttles" in message
        assert left.items() <= op.kafka.values.items()
        assert op.kafka.altered == []

    async def test_the_lower_of_both(self):
        """A throttle resource says so for the whole cluster, without a rate of its own; what binds is named."""
        op = operator()
        op.kafka.slow = {5}
        op.kafka.values = left = {(BrokerId(5), FOLLOWER_RATE): "1000"}
        metadata = {"name": "limits", "namespace": "kafka", "uid": "u-t", "creationTimestamp": NOON.isoformat()}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "whenReplicationThrottled": "Lowest"}
        body = op.kube.create(REASSIGNMENT_THROTTLES, {"metadata": metadata, "spec": spec})
        op.engine.see_throttles({"u-t": parse_throttle(body)})
        op.assign(("t", 0, [1, 5]), throttle={"leaderRate": 5000, "followerRate": 5000})
        await op.until_true(lambda: op.kafka.flying)
        await op.round()
        assert op.kafka.rates(5) == ("5000", "1000")
        assert op.status["throttle"]["boundBy"] == REPLICATION_THROTTLE
        assert REPLICATION_THROTTLE in op.condition("ThrottleApplied")["message"]
        op.kafka.arrive()
        await op.until("Succeeded")
        assert op.kafka.values == left
