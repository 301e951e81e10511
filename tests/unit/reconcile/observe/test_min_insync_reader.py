"""The effective min.insync.replicas of topics, of which some may not be described."""

from types import SimpleNamespace

from kafka_rebalance.errors import Permanent
from kafka_rebalance.kafka.ports import Answers, ConfigSource, ConfigValue
from kafka_rebalance.reconcile.observe.min_insync_reader import MinInsyncReader

FORBIDDEN = Permanent("KafkaAuthorizationFailed", "Kafka does not allow us to describe theirs")


class Admin:
    """The topic "theirs" may not be described; each other one requires two replicas in sync."""

    def __init__(self):
        self.asked = []

    async def topic_configs(self, topics, names):
        self.asked.append(set(topics))
        values = {name: ConfigValue("2", ConfigSource.DEFAULT) for name in names}
        denied = {topic: FORBIDDEN for topic in topics if topic == "theirs"}
        return Answers({topic: values for topic in topics if topic not in denied}, denied)


async def test_a_topic_that_may_not_be_described_holds_up_no_other_one():
    reader = MinInsyncReader(Admin(), SimpleNamespace(monotonic=lambda: 0.0))
    assert await reader.read(["mine", "theirs"]) == {"mine": 2}
    assert reader.denied == {"theirs": FORBIDDEN.message}


async def test_topics_that_are_not_asked_for_any_more_are_forgotten():
    """A server may show thousands of unhealthy topics with other names in each reading."""
    admin = Admin()
    reader = MinInsyncReader(admin, SimpleNamespace(monotonic=lambda: 0.0))
    await reader.read(["mine", "other", "theirs"])
    assert await reader.read(["mine"]) == {"mine": 2}
    assert reader.denied == {}
    assert await reader.read(["mine", "other"]) == {"mine": 2, "other": 2}
    assert admin.asked == [{"mine", "other", "theirs"}, {"other"}]


async def test_some_are_read_again():
    admin = Admin()
    reader = MinInsyncReader(admin, SimpleNamespace(monotonic=lambda: 0.0))
    await reader.read(["mine", "other"])
    assert await reader.read_again({"other"}) == {"mine": 2, "other": 2}
    assert admin.asked == [{"mine", "other"}, {"other"}]
