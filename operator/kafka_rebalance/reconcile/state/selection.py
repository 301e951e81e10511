"""Which partitions a spec selects. Pure."""

from collections.abc import Mapping

from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.model.topology import PartitionState, TopicPartition


def select(
    spec: KafkaRebalanceSpec, partitions: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, PartitionState]:
    """The partitions that the spec's topic filter takes."""
    chosen = TopicFilter.of(spec.topics)
    topics = {topic for topic in {tp.topic for tp in partitions} if chosen.matches(topic)}
    return {tp: state for tp, state in partitions.items() if tp.topic in topics}
