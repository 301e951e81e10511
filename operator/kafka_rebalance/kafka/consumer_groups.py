"""What consumer groups have committed. Reads only, with Describe on groups."""

import asyncio
from collections.abc import Collection, Mapping
from concurrent.futures import Future
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError
from confluent_kafka.admin import AdminClient

from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.confluent import REQUEST_SECONDS, ConfluentClient
from kafka_rebalance.kafka.ports import Answers
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reasons import Reason

MOST_GROUPS = 10_000
"""The calls for 20,000 of them take 155 MiB."""


async def committed_offsets(
    client: ConfluentClient, groups: Collection[str], most: int
) -> Answers[str, dict[TopicPartition, int], str]:
    """By group; one that was deleted meanwhile is absent. A call per group (librdkafka takes no more), all together.

    Permanent if they have more than ``most`` offsets, or if there are more than ``MOST_GROUPS``.
    """
    if not groups:
        return Answers()
    if len(groups) > MOST_GROUPS:
        why = f"there are {len(groups)} consumer groups, more than the limit of {MOST_GROUPS}"
        raise Permanent(Reason.CONSUMPTION_UNKNOWN, why)
    wanted = [ConsumerGroupTopicPartitions(group) for group in sorted(set(groups))]

    def ask(admin: AdminClient) -> Mapping[str, Future[Any]]:
        calls = (admin.list_consumer_group_offsets([group], request_timeout=REQUEST_SECONDS) for group in wanted)
        return {group: future for futures in calls for group, future in futures.items()}

    answers = await client.ask_all("read the offsets of consumer groups", ask)
    return await asyncio.to_thread(_answers, client, answers, most)


def _answers(
    client: ConfluentClient, answers: Mapping[str, Any], most: int
) -> Answers[str, dict[TopicPartition, int], str]:
    """Takes seconds for a million offsets."""
    found: dict[str, dict[TopicPartition, int]] = {}
    errors: dict[str, RebalanceError] = {}
    for group, answer in answers.items():
        offsets = answer if isinstance(answer, KafkaError) else _offsets(answer)
        if not isinstance(offsets, KafkaError):
            found[group] = offsets
        elif offsets.code() != KafkaError.GROUP_ID_NOT_FOUND:
            errors[group] = client.failure(f"read the offsets of consumer group {group}", offsets)
    total = sum(map(len, found.values()))
    if total > most:
        why = f"they have {total} committed offsets, more than the limit of {most}"
        raise Permanent(Reason.CONSUMPTION_UNKNOWN, why)
    return Answers(found, errors)


def _offsets(answer: ConsumerGroupTopicPartitions) -> dict[TopicPartition, int] | KafkaError:
    """The next offset of each partition; negative ones stand for none. The error of a partition is that of all."""
    found: dict[TopicPartition, int] = {}
    for partition in answer.topic_partitions or ():
        if partition.error is not None:
            return partition.error
        if partition.offset >= 0:
            found[TopicPartition(partition.topic, partition.partition)] = partition.offset
    return found
