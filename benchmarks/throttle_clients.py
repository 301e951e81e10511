"""Latency of producers and consumers of other topics, with and without a throttled rebalance.

Kafka's own tool makes the same moves at the same rate in the same run, for comparison.
"""

import logging
import statistics
import struct
import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Self

from confluent_kafka import Consumer, KafkaError, Message, Producer, TopicPartition
from e2e.bench.kafka import KafkaCluster
from e2e.world import World

from benchmarks.throttle_report import Section, spread
from benchmarks.throttle_stage import MEGABYTE, drop, moved_by_kafka, moving

THROTTLE = 20
"""Megabytes per second."""
ROUNDS = 6
SETTLING_SECONDS = 5
MEASURED_SECONDS = 20
RECORDS_PER_SECOND = 200
RECORD_BYTES = 1_000
REPLICAS = ((1, 2, 3), (2, 3, 4), (3, 4, 1), (4, 1, 2))
"""Replicas of the clients' topic: every broker leads and follows, including the brokers of the rebalance."""
SOURCE, DESTINATIONS = 1, (2, 3)
MOVED_PARTITIONS = 12
_STAMP = struct.Struct(">d")

_quiet = logging.getLogger("benchmarks.throttle_clients")
_quiet.addHandler(logging.NullHandler())
_quiet.propagate = False


@dataclass(frozen=True)
class Latency:
    """The 99th percentile and the median over one period, in milliseconds."""

    produce99: float
    """From `produce` to the acknowledgement of all replicas in sync."""
    read99: float
    """From `produce` until the consumer receives the record."""
    produce50: float
    read50: float


def client_latency(world: World, _idle: float) -> Section:
    """Periods without moves, with moves of the operator and of Kafka's tool, in a different order each round."""
    size = int(THROTTLE * MEGABYTE * (SETTLING_SECONDS + MEASURED_SECONDS) * 3) // MOVED_PARTITIONS
    moved = world.topic("moved", [[SOURCE]] * MOVED_PARTITIONS, size)
    used = world.topic("clients", REPLICAS, 1_000)
    rounds = []
    with Clients(world.kafka, used, len(REPLICAS)) as clients:
        periods: dict[str, Callable[[], Latency]] = {
            "without": clients.measure,
            "operator": lambda: _while_moving(world, moved, clients),
            "tool": lambda: _while_kafkas_tool_moves(world, moved, clients),
        }
        for name in ("without", "without", "operator", "tool"):
            periods[name]()  # warm-up, not counted: a cold broker lags for half a minute
        for number in range(ROUNDS):
            names = list(periods)
            turned = names[number % len(names) :] + names[: number % len(names)]
            found = {name: asdict(periods[name]()) for name in turned}
            rounds.append({name: found[name] for name in names})
    for topic in (moved, used):
        drop(world, topic)
    rows = []
    for field, name in (("produce99", "produce p99"), ("read99", "end to end p99"), ("produce50", "produce median")):
        without, ours, theirs = ([found[when][field] for found in rounds] for when in periods)
        ratios = ([one / other for one, other in zip(ours, others, strict=True)] for others in (without, theirs))
        rows.append([name, *(spread(found, 1) for found in (without, ours, theirs)), *map(spread, ratios)])
    note = (
        f"{RECORDS_PER_SECOND} records/s of {RECORD_BYTES} bytes, acks=all, three replicas, read by one consumer; "
        f"another topic moves from one broker to two at {THROTTLE} MB/s, {MOVED_PARTITIONS} partitions at once; "
        f"{ROUNDS} rounds of {MEASURED_SECONDS} s each. The ratios are within a round."
    )
    columns = (
        *("latency", "without moves, ms", "beside the operator, ms", "beside Kafka's tool, ms"),
        *("operator / without", "operator / Kafka's tool"),
    )
    return Section("Clients beside a throttled rebalance", note, columns, rows, rounds)


def _while_moving(world: World, topic: str, clients: "Clients") -> Latency:
    with moving(world, topic, DESTINATIONS, THROTTLE):
        return clients.measure()


def _while_kafkas_tool_moves(world: World, topic: str, clients: "Clients") -> Latency:
    with moved_by_kafka(world, topic, DESTINATIONS, THROTTLE):
        return clients.measure()


class Clients:
    """A producer at a fixed rate and a consumer, each in its thread; every record carries its creation time."""

    def __init__(self, cluster: KafkaCluster, topic: str, partitions: int) -> None:
        self._topic, self._partitions = topic, partitions
        self._producer = Producer(cluster.client_config(acks="all", **{"linger.ms": 0}), logger=_quiet)
        reading = {"group.id": str(uuid.uuid4()), "fetch.wait.max.ms": 100}
        self._consumer = Consumer(cluster.client_config(**reading), logger=_quiet)
        end = -1  # librdkafka's OFFSET_END
        self._consumer.assign([TopicPartition(topic, partition, end) for partition in range(partitions)])
        self._acknowledged: list[tuple[float, float]] = []
        self._read: list[tuple[float, float]] = []
        self._failures: list[str] = []
        self._stop = threading.Event()
        works = (self._produce, self._serve, self._consume)
        self._threads = [threading.Thread(target=work, daemon=True) for work in works]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._consumer.close()

    def measure(self) -> Latency:
        """Wait for a steady state, then measure the records of one period; raises if a record was refused."""
        time.sleep(SETTLING_SECONDS)
        begin = time.monotonic()
        time.sleep(MEASURED_SECONDS)
        end = time.monotonic()
        self._producer.flush(30)
        time.sleep(1)  # the consumer has received all acknowledged records
        if self._failures:
            raise RuntimeError(f"records were refused: {self._failures[:3]}")
        produced, read = (
            [took * 1000 for made, took in rows.copy() if begin <= made < end]
            for rows in (self._acknowledged, self._read)
        )
        p99s = [round(statistics.quantiles(rows, n=100)[98], 2) for rows in (produced, read)]
        medians = [round(statistics.median(rows), 2) for rows in (produced, read)]
        return Latency(*p99s, *medians)

    def _produce(self) -> None:
        """Produce records at fixed intervals; a late record is produced at once with its scheduled time."""
        padding = b"." * (RECORD_BYTES - _STAMP.size)
        due, number = time.monotonic(), 0
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            value = _STAMP.pack(due) + padding
            self._producer.produce(self._topic, value, partition=number % self._partitions, on_delivery=self._delivered)
            due += 1 / RECORDS_PER_SECOND
            number += 1

    def _serve(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.1)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failures.append(error.str())
        else:
            self._note(self._acknowledged, message)

    def _consume(self) -> None:
        while not self._stop.is_set():
            message = self._consumer.poll(0.1)
            if message is None:
                continue
            if (error := message.error()) is not None:
                self._failures.append(error.str())
            else:
                self._note(self._read, message)

    def _note(self, rows: list[tuple[float, float]], message: Message) -> None:
        now = time.monotonic()
        (made,) = _STAMP.unpack_from(message.value() or b"")
        rows.append((made, now - made))
