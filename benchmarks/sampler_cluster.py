"""Real brokers for the benchmark of the sampler: many empty partitions, and consumer groups that have committed."""

import contextlib
from collections.abc import Iterator

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from e2e.bench.kafka import KafkaCluster, racks_of
from e2e.bench.waiting import wait_until

BROKERS = (1, 2, 3, 4)
RF = 2
"""Each broker then has half as many replicas as there are partitions, for which the small heaps of the bench do."""
PER_TOPIC = 100
EACH = 5
"""A group has committed offsets of one partition in this many."""
_AT_ONCE = 10
_SECONDS = 300
# Commits of groups without members are kept for as long as the benchmark runs, whatever the time.
_PROPERTIES = {"offsets.retention.minutes": "1440", "log.index.size.max.bytes": "4096"}


@contextlib.contextmanager
def real_cluster(partitions: int, groups: int) -> Iterator[str]:
    """The bootstrap servers of a cluster with these partitions and groups."""
    with KafkaCluster(racks_of(BROKERS, len(BROKERS)), properties=_PROPERTIES) as kafka:
        admin = kafka.admin()
        _create(admin, partitions)
        for number in range(groups):
            _commit(kafka, partitions, number)
        yield kafka.bootstrap_servers


def _create(admin: AdminClient, partitions: int) -> None:
    """A few topics at a time: the brokers have two threads for requests."""
    names = [f"topic-{number:04d}" for number in range(partitions // PER_TOPIC)]
    for first in range(0, len(names), _AT_ONCE):
        topics = [NewTopic(name, PER_TOPIC, RF) for name in names[first : first + _AT_ONCE]]
        for done in admin.create_topics(topics, request_timeout=_SECONDS, operation_timeout=_SECONDS).values():
            done.result()


def _commit(kafka: KafkaCluster, partitions: int, number: int) -> None:
    """As a consumer does. librdkafka's admin client aborts the process if the coordinator is not ready yet."""
    wanted = range(number % EACH, partitions, EACH)
    offsets = [TopicPartition(f"topic-{at // PER_TOPIC:04d}", at % PER_TOPIC, 0) for at in wanted]
    consumer = Consumer(kafka.client_config() | {"group.id": f"group-{number:03d}"})

    def committed() -> bool:
        try:
            return all(done.error is None for done in consumer.commit(offsets=offsets, asynchronous=False))
        except KafkaException as error:  # until the topic of the offsets is there, no broker is the coordinator
            if not error.args[0].retriable() and error.args[0].code() != KafkaError.NOT_COORDINATOR:
                raise
            return False

    try:
        wait_until(f"group {number} has committed", committed, timeout=_SECONDS)
    finally:
        consumer.close()
