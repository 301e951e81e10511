"""Which partitions a spec selects, and which topics it pins. Pure; call both through ``in_thread``."""

from collections.abc import Iterable, Mapping

from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.topic_patterns import TopicFilter
from kafka_rebalance.model.topology import PartitionState, TopicPartition


def select(
    spec: KafkaRebalanceSpec, partitions: Mapping[TopicPartition, PartitionState]
) -> dict[TopicPartition, PartitionState]:
    """The partitions that the spec's topic filter takes."""
    there = {tp.topic for tp in partitions}
    topics = set(TopicFilter.of(spec.topics).select(there))
    if topics == there:
        return dict(partitions)
    return {tp: state for tp, state in partitions.items() if tp.topic in topics}


def pinned_topics(spec: KafkaRebalanceSpec, partitions: Iterable[TopicPartition]) -> frozenset[str]:
    """The topics of these partitions that the spec pins."""
    if not spec.topics.pinned:
        return frozenset()
    return frozenset(TopicFilter.of_pinned(spec.topics).select({tp.topic for tp in partitions}))
