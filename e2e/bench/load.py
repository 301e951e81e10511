"""Topics, their data, and traffic that proves that no acknowledged record was lost.

It uses only confluent-kafka and is independent of reassignments.
"""

import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import NewTopic, OffsetSpec

from e2e.bench.kafka import KafkaCluster
from e2e.bench.waiting import wait_until

_quiet = logging.getLogger("e2e.bench.load.client")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


def create_topics(
    cluster: KafkaCluster,
    assignments: Mapping[str, Sequence[Sequence[int]]],
    configs: Mapping[str, str] | None = None,
) -> None:
    """Create topics with these replicas per partition, and wait until every broker knows every leader."""
    topics = [
        NewTopic(
            topic,
            num_partitions=len(partitions),
            replica_assignment=[list(replicas) for replicas in partitions],
            config=dict(configs or {}),
        )
        for topic, partitions in assignments.items()
    ]
    admin = cluster.admin()
    for created in admin.create_topics(topics, operation_timeout=120, request_timeout=120).values():
        created.result(timeout=150)
    for broker in cluster.running:
        client = cluster.admin(cluster.address(broker))
        wait_until(f"broker {broker} knows the new topics", partial(_all_led, client, assignments))


def _ends(admin: Any, partitions: Collection[TopicPartition]) -> dict[TopicPartition, int]:
    """The end of each partition whose leader knows that it leads. One call: a consumer would query them one by one."""
    found = {}
    for at, end in admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest()), request_timeout=120).items():
        try:
            found[at] = end.result().offset
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION:
                raise
    return found


def _all_led(client: Any, assignments: Mapping[str, Sequence[Sequence[int]]]) -> bool:
    known = client.list_topics(timeout=120).topics
    return all(
        topic in known
        and len(known[topic].partitions) == len(partitions)
        and all(state.leader >= 0 for state in known[topic].partitions.values())
        for topic, partitions in assignments.items()
    )


def fill(
    cluster: KafkaCluster,
    partitions: Mapping[tuple[str, int], int],
    *,
    record_bytes: int = 16_384,
    batch_bytes: int = 500_000,
) -> None:
    """Write this many bytes of incompressible records to each partition, acknowledged by all replicas.

    A throttled copy gets one batch in ten seconds at least, however low its rate is.
    """
    failed: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            failed.append(error)

    # Five requests in flight per broker: without the limit librdkafka sends everything, which overflows our small
    # heaps.
    settings: dict[str, Any] = {
        "max.in.flight": 5,
        "linger.ms": 5,
        "batch.size": batch_bytes,
        "queue.buffering.max.kbytes": 16_384,
    }
    payload = os.urandom(record_bytes)
    # The bulk is acknowledged by the leaders only, so that followers fetch large batches. The last record waits for all
    # replicas, and so for all records before it.
    bulk = Producer(cluster.client_config(acks="1", **settings), logger=_quiet)
    # One partition after the other: librdkafka sends each partition's batch in its own request, so full batches cost a
    # tenth of many partial ones.
    for (topic, partition), size in partitions.items():
        for begin in range(record_bytes, size, record_bytes):
            _produce(bulk, topic, payload[: size - begin], partition, delivered)
    _finish(bulk, failed)
    last = Producer(cluster.client_config(acks="all", **settings), logger=_quiet)
    for (topic, partition), size in partitions.items():
        _produce(last, topic, payload[:size], partition, delivered)
    _finish(last, failed)


def _finish(producer: Producer, failed: list[KafkaError]) -> None:
    """Wait until every record is acknowledged, for as long as some are in each 120 s: a busy machine is only slow."""
    waiting = len(producer)
    while not failed and (left := producer.flush(120)):
        if left >= waiting:
            raise RuntimeError(f"records were not acknowledged: none of {left} for 120 s")
        waiting = left
    if failed:
        raise RuntimeError(f"records were not acknowledged: {failed[:3]}")


def _produce(producer: Producer, topic: str, value: bytes, partition: int, delivered: Any) -> None:
    while True:
        try:
            producer.produce(topic, value, partition=partition, on_delivery=delivered)
        except BufferError:
            producer.poll(1)
        else:
            producer.poll(0)
            return


@dataclass(frozen=True)
class TrafficReport:
    """The outcome of a `Traffic`; lost records were acknowledged and never read back."""

    produced: int
    acknowledged: int
    consumed: int
    lost: int
    duplicated: int
    refused: tuple[str, ...]
    complaints: tuple[str, ...]
    """Errors of the consumer, for example unavailable brokers: to explain a loss."""

    @property
    def clean(self) -> bool:
        """Every record was acknowledged, and read back exactly once."""
        return not self.lost and not self.duplicated and not self.refused and self.produced == self.acknowledged


class Traffic:
    """A producer (idempotent, acks=all) and a consumer that run in the background until `stop`.

    `rate` is in records per second over all partitions of the topics, or those of `partitions`, which are written in
    turn. Each record contains the id of this traffic, its partition and its sequence number, so that other records in
    the topics are ignored.
    """

    def __init__(
        self,
        cluster: KafkaCluster,
        topics: Sequence[str] = (),
        *,
        partitions: Sequence[tuple[str, int]] = (),
        rate: float = 100,
        record_bytes: int = 200,
    ) -> None:
        self._rate = rate
        self._mark = uuid.uuid4().hex.encode()
        self._padding = b"." * max(0, record_bytes - 60)
        self._stopping = threading.Event()
        self._drained = threading.Event()
        self._lock = threading.Lock()
        self._produced = 0
        self._acknowledged: set[tuple[str, int, int]] = set()
        self._consumed: Counter[tuple[str, int, int]] = Counter()
        self._refused: list[str] = []
        self._complaints: Counter[str] = Counter()
        self._fatal: BaseException | None = None
        writing: dict[str, Any] = {"enable.idempotence": True, "acks": "all", "linger.ms": 5}
        reading: dict[str, Any] = {
            "group.id": f"traffic-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "auto.offset.reset": "latest",
        }
        self._producer = Producer(cluster.client_config(**writing), logger=_quiet)
        self._consumer = Consumer(cluster.client_config(**reading), logger=_quiet)
        self._partitions = self._begin_at_the_end(cluster, topics, partitions)
        self._threads = [
            threading.Thread(target=self._guarded, args=(work,), name=f"traffic-{work.__name__}", daemon=True)
            for work in (self._produce, self._consume)
        ]

    @property
    def consumed(self) -> int:
        """Number of different records that have been read back so far."""
        with self._lock:
            return len(self._consumed)

    def start(self) -> "Traffic":
        """Start writing and reading."""
        for thread in self._threads:
            thread.start()
        return self

    def stop(self, timeout: float = 60) -> TrafficReport:
        """Stop writing, read until every acknowledged record was seen or `timeout` expires, and report."""
        self._stopping.set()
        producing, consuming = self._threads
        producing.join(timeout)
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline and self._fatal is None and self._missing():
            self._drained.wait(0.1)
        self._drained.set()
        consuming.join(timeout)
        if self._fatal is not None:
            raise RuntimeError("the traffic broke down") from self._fatal
        lost = self._missing()
        with self._lock:
            return TrafficReport(
                produced=self._produced,
                acknowledged=len(self._acknowledged),
                consumed=len(self._consumed),
                lost=lost,
                duplicated=sum(self._consumed.values()) - len(self._consumed),
                refused=tuple(self._refused),
                complaints=tuple(f"{text} ({times}x)" for text, times in self._complaints.items()),
            )

    def _missing(self) -> int:
        with self._lock:
            return len(self._acknowledged - self._consumed.keys())

    def _begin_at_the_end(
        self, cluster: KafkaCluster, topics: Sequence[str], only: Sequence[tuple[str, int]]
    ) -> list[tuple[str, int]]:
        admin = cluster.admin()
        known = admin.list_topics(timeout=120).topics
        partitions = [*only] or [(topic, number) for topic in topics for number in sorted(known[topic].partitions)]
        ends: dict[TopicPartition, int] = {}

        def answered() -> bool:
            # A broker shows that it leads a new partition a moment before it answers for it.
            asked = {TopicPartition(*partition) for partition in partitions} - ends.keys()
            ends.update(_ends(admin, asked))
            return len(ends) == len(partitions)

        wait_until("the leaders of all partitions answer", answered)
        self._consumer.assign([TopicPartition(at.topic, at.partition, end) for at, end in ends.items()])
        return partitions

    def _guarded(self, work: Any) -> None:
        try:
            work()
        except (KafkaException, RuntimeError, ValueError) as error:
            self._fatal = error

    def _produce(self) -> None:
        numbers: Counter[tuple[str, int]] = Counter()
        begun = time.monotonic()
        while not self._stopping.is_set():
            # In small bursts: a wake-up per record would cost more than the record.
            due = int((time.monotonic() - begun) * self._rate) - self._produced
            for _ in range(due):
                topic, partition = self._partitions[self._produced % len(self._partitions)]
                number = numbers[topic, partition]
                numbers[topic, partition] += 1
                value = b"%s:%d:%s" % (self._mark, number, self._padding)
                _produce(self._producer, topic, value, partition, self._delivered)
                self._produced += 1
            self._producer.poll(0)
            self._stopping.wait(0.05)
        if unanswered := self._producer.flush(60):
            self._refused.append(f"{unanswered} records without an answer after 60 s")

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        with self._lock:
            if error is not None:
                self._refused.append(f"{message.topic()}-{message.partition()}: {error.str()}")
            elif (key := self._key(message)) is not None:
                self._acknowledged.add(key)

    def _consume(self) -> None:
        while not self._drained.is_set():
            for message in self._consumer.consume(500, timeout=0.2):
                error = message.error()
                if error is not None:
                    # librdkafka continues by itself when a broker is unavailable; records that it skips are counted as
                    # lost.
                    self._complaints[error.str()] += 1
                    continue
                if (key := self._key(message)) is not None:
                    with self._lock:
                        self._consumed[key] += 1
        self._consumer.close()

    def _key(self, message: Message) -> tuple[str, int, int] | None:
        mark, _, rest = (message.value() or b"").partition(b":")
        topic, partition = message.topic(), message.partition()
        if mark != self._mark or topic is None or partition is None:
            return None
        return topic, partition, int(rest.split(b":", 1)[0])
