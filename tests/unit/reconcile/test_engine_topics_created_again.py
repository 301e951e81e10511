"""A topic that is deleted and created again in a slow round is not given the lists of its predecessor."""

from datetime import timedelta

from tests.fakes.kafka_in_memory import KafkaInMemory
from tests.fakes.operator_in_memory import OperatorInMemory

from kafka_rebalance.model.topology import BrokerId


class SlowThrottle(KafkaInMemory):
    """Broker 6 takes ten seconds for its rate. Meanwhile the topic is created again."""

    def __init__(self, *args, **topics):
        super().__init__(*args, **topics)
        self.clock, self.created_again = None, False

    async def alter_broker_configs(self, changes):
        if BrokerId(6) in changes and not self.created_again:
            self.clock.at += timedelta(seconds=10)
            self.created_again = True
            self.delete("t")
            self.create("t", [[5, 2, 3]] * 3, "id-2")
        return await super().alter_broker_configs(changes)


async def test_a_topic_that_is_created_again_while_the_throttle_is_set():
    """The call names the topic, so the list that was planned for the former topic would be set for the new one."""
    kafka = SlowThrottle(range(1, 7), t=[[1, 2, 3]] * 3)
    operator = OperatorInMemory(kafka)
    kafka.clock = operator.clock
    rate = {"leaderRate": "1Mi", "followerRate": "1Mi"}
    operator.apply(strategy="ForcedMovesOnly", brokers={"decommission": [1]}, throttle=rate)
    await operator.until_true(lambda: kafka.created_again)
    for _ in range(20):
        await operator.round()
    assert not kafka.altered
    assert kafka.lists("t") == [[5, 2, 3]] * 3
    operator.delete()
    for _ in range(30):
        await operator.round()
    assert kafka.lists("t") == [[5, 2, 3]] * 3
