"""The simulated brokers in place of `e2e.bench.kafka.KafkaCluster`, for the cases of `tests/contract`.

Nothing fails here by itself; only reads may be old, as recorded. Time is virtual.
"""

import asyncio
import contextlib
import random
from concurrent.futures import Future
from itertools import pairwise
from types import SimpleNamespace

from confluent_kafka import KafkaError, KafkaException
from tests.simulation.brokers import SimulatedKafka
from tests.simulation.contract_client import SimulatedClient

from kafka_rebalance.model.topology import BrokerId

_TOOL_SECONDS = 1.0


class Unjudged:
    """In place of the judge: whatever happens is right."""

    def __getattr__(self, name):
        return lambda *_, **__: None


class StandInCluster:
    """``kafka`` is what it runs. The other names are those of `KafkaCluster`."""

    def __init__(self, racks, line, kind=SimulatedKafka, files=None):
        loop = asyncio.get_running_loop()
        draw = random.Random(line)
        faults = SimpleNamespace(stale=lambda: draw.random() < 0.5)
        judge = Unjudged()
        judge.log_dirs, judge.statuses = Unjudged(), SimpleNamespace(made={})
        world = SimpleNamespace(loop=loop, faults=faults, judge=judge, log_dir_random=draw)
        self.kafka = kind(world, racks, line=line, racks=racks)
        self.kafka.files |= {(BrokerId(b), name): value for name, value in (files or {}).items() for b in racks}
        self.racks = racks
        self._copying = loop.create_task(self.kafka.copy_on())

    def close(self):
        self._copying.cancel()

    def connect(self):
        """A client of the port of the operator."""
        return SimulatedClient(self.kafka)

    bootstrap_servers = "kafka-1:9092"

    # Brokers ---------------------------------------------------------------------------------------------------------

    @property
    def running(self):
        return tuple(int(b) for b in self.kafka.brokers)

    def kill9(self, *brokers):
        for b in brokers:
            self.kafka.die(BrokerId(b))

    stop = kill9

    def wait_gone(self, *brokers):
        """They are fenced already."""

    def start_brokers(self, *brokers):
        for b in brokers:
            self.kafka.come_back(BrokerId(b), missed=False)

    def replace(self, broker):
        self.kafka.wipe(BrokerId(broker))
        self.start_brokers(broker)

    def restart(self, *brokers):
        self.kill9(*brokers)
        self.start_brokers(*brokers)

    def log_dirs_of(self, broker):
        return self.kafka.dirs[BrokerId(broker)]

    @contextlib.contextmanager
    def failure(self, number):
        """As `tests.contract.test_offline_log_dir.failure`."""
        path = self.log_dirs_of(1)[number]
        self.kafka.offline.add((BrokerId(1), path))
        self.restart(1)
        yield path
        self.kill9(1)
        self.kafka.offline.clear()

    # Clients of Kafka ------------------------------------------------------------------------------------------------

    def address(self, broker):
        return f"kafka-{broker}:9092"

    def admin(self, _address=None):
        return StandInAdmin(self.kafka)

    def producer(self, **_settings):
        return StandInProducer(self.kafka)

    def run_tool(self, main, *arguments):
        """ConfigCommand for the default of all brokers, or the description of the quorum. A tool takes a second."""
        self.kafka.world.loop.now += _TOOL_SECONDS
        if main.endswith("MetadataQuorumCommand"):
            return f"LeaderEpoch: {self.kafka.controller_epoch}"
        given = dict(pairwise(arguments))
        if "--add-config" in given:
            name, _, value = given["--add-config"].partition("=")
            self.kafka.defaults[name] = value
        else:
            del self.kafka.defaults[given["--delete-config"]]
        return ""


class StandInAdmin:
    """The calls of librdkafka's AdminClient by which tests make and change topics."""

    def __init__(self, kafka):
        self._kafka = kafka

    def create_topics(self, topics, **_):
        return {new.topic: _answered(self._create, new) for new in topics}

    def _create(self, new):
        rows = new.replica_assignment or self._kafka.placement(new.num_partitions, new.replication_factor)
        if rows is None or any(not set(row) & set(self._kafka.brokers) for row in rows):
            raise KafkaException(KafkaError(KafkaError.INVALID_REPLICA_ASSIGNMENT, _WHY))
        self._kafka.make_topic(new.topic, rows, 0, 1)
        for name, value in (new.config or {}).items():
            self._kafka.values[new.topic, name] = value

    def delete_topics(self, topics, **_):
        return {topic: _answered(self._kafka.delete_topic, topic) for topic in topics}

    def create_partitions(self, wanted, **_):
        return {new.topic: _answered(self._grow, new) for new in wanted}

    def _grow(self, new):
        while sum(tp.topic == new.topic for tp in self._kafka.states) < new.new_total_count:
            self._kafka.add_partition(new.topic)

    def list_topics(self, **_):
        topics = {}
        for tp, state in self._kafka.states.items():
            found = topics.setdefault(tp.topic, SimpleNamespace(partitions={}))
            found.partitions[tp.partition] = SimpleNamespace(leader=-1 if state.leader is None else state.leader)
        return SimpleNamespace(topics=topics)


_WHY = "INVALID_REPLICA_ASSIGNMENT: all are dead, or too few are not cordoned"


def _answered(act, *arguments):
    future = Future()
    try:
        future.set_result(act(*arguments))
    except KafkaException as error:
        future.set_exception(error)
    return future


class StandInProducer:
    """Whatever is written is in all replicas that are in sync."""

    def __init__(self, kafka):
        self._kafka = kafka

    def produce(self, topic, payload, partition):
        self._kafka.write(topic, partition, len(payload))

    def poll(self, _seconds):
        pass

    def flush(self, _seconds):
        return 0
