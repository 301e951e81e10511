"""Clusters whose brokers have several log dirs, and runs that only even those: shared by the tests of the engine."""

from tests.fakes.kafka_in_memory import KafkaInMemory

from kafka_rebalance.execution.reassignment_throttle import LOG_DIR_RATE
from kafka_rebalance.model.topology import BrokerId

MIB = 2**20
ONE = BrokerId(1)
A, B, C = "/data/a", "/data/b", "/data/c"


def jbod(brokers=(1,), partitions=6, **more):
    """All replicas of broker 1 are in its first log dir."""
    kafka = KafkaInMemory(brokers, size=100, t=[[1]] * partitions, **more)
    kafka.dirs = {BrokerId(b): (A, B, C) for b in brokers}
    return kafka


def only_log_dirs(operator, **spec):
    goals = {"logDirs": {"band": "10%"} | spec.pop("logDirs", {})}
    operator.apply(strategy="LogDirs", goals=goals, **spec)


def rate_of(kafka):
    return kafka.values.get((ONE, LOG_DIR_RATE))


def places(kafka):
    return [kafka.dir_of(f"t-{n}", 1) for n in range(6)]


async def half_way(kafka, operator, **spec):
    """Start a run of four moves, two at a time: the first two have arrived, the others are in flight."""
    kafka.crawling = {ONE}
    only_log_dirs(operator, execution={"maxPerBroker": {"betweenLogDirs": 2}}, **spec)
    await operator.until_true(lambda: len(kafka.future) == 2)
    kafka.copied()
    kafka.crawling = {ONE}
    await operator.until_true(lambda: len(kafka.future) == 2)
    assert kafka.bytes_in(1)[A] == 400
