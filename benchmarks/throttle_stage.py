"""The setup of the throttle benchmark: four stock brokers, an API server, the operator, and moves between brokers."""

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence

from e2e.bench.kafka import KafkaCluster
from e2e.bench.kube import kube_cluster
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until
from e2e.rebalance import Rebalance, state
from e2e.world import World

from benchmarks.throttle_flow import Flow

MEGABYTE = 1_000_000
BROKERS = (1, 2, 3, 4)
# Free the disk space of deleted replicas at once; the default is one minute.
PROPERTIES = {"log.segment.delete.delay.ms": "1000"}


@contextlib.contextmanager
def stage(brokers: Iterable[int] = BROKERS) -> Iterator[World]:
    """An API server, the operator, and brokers in one rack with Kafka's defaults for replication.

    The brokers have the small heaps of the bench, and their code is compiled by C1 only.
    """
    names: dict[str, int] = {}

    def unique(name: str) -> str:
        names[name] = names.get(name, 0) + 1
        return f"{name}-{names[name]}"

    with contextlib.ExitStack() as stack:
        kube = stack.enter_context(kube_cluster())
        kafka = stack.enter_context(KafkaCluster(dict.fromkeys(brokers, "r1"), properties=PROPERTIES))
        operator = OperatorProcess(kube).install().start()
        stack.callback(operator.close)
        yield World(kafka, kube, operator, unique)


def throttle(megabytes: int) -> dict[str, str]:
    """This many megabytes per second on both sides of each broker."""
    return {"leaderRate": f"{megabytes}M", "followerRate": f"{megabytes}M"}


def drop(world: World, topic: str) -> None:
    """Delete a topic and its data."""
    admin = world.kafka.admin()
    admin.delete_topics([topic])[topic].result(timeout=60)
    places = [world.kafka.directory / f"{broker}-data" for broker in world.kafka.running]
    wait_until(f"{topic} is deleted", lambda: not any(list(place.glob(f"{topic}-*")) for place in places))


@contextlib.contextmanager
def moving(world: World, topic: str, to: Sequence[int], megabytes: int) -> Iterator[tuple[Rebalance, Flow]]:
    """A rebalance of a topic to these brokers, all partitions in parallel; it has started to copy.

    At the end it is deleted, which cancels the copies and restores the topic. A topic must have more bytes than can be
    copied during the measurement.
    """
    aim = {"throttle": throttle(megabytes), "brokers": {"include": list(to)}}
    # Started before the rebalance: existing replicas do not count as copies.
    with Flow(world.kafka, topic) as flow:
        rebalance = world.rebalance("move", topic, **aim)
        try:
            flow.begun()
            yield rebalance, flow
            if state(rebalance.status)[0] == "Succeeded":
                raise RuntimeError(f"{topic} is too small: it has been moved before the end")
        finally:
            rebalance.delete()
            rebalance.wait_gone(180)
        wait_until(f"no copy of {topic} is left", lambda: not flow.copied_now(), timeout=180)


@contextlib.contextmanager
def moved_by_kafka(world: World, topic: str, to: Sequence[int], megabytes: int) -> Iterator[Flow]:
    """The same moves at the same rate with Kafka's own tool, started; cancelled at the end, its throttle removed."""
    file = world.kafka.directory / f"{topic}.json"
    count = len(world.judge.describe_topics(topic))
    rows = [{"topic": topic, "partition": at, "replicas": [to[at % len(to)]]} for at in range(count)]
    file.write_text(json.dumps({"version": 1, "partitions": rows}))

    def tool(*options: str) -> None:
        where = ("--bootstrap-server", world.kafka.bootstrap_servers, "--reassignment-json-file", str(file))
        world.kafka.run_tool("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", *where, *options)

    with Flow(world.kafka, topic) as flow:
        tool("--execute", "--throttle", str(megabytes * MEGABYTE))
        try:
            flow.begun()
            yield flow
        finally:
            tool("--cancel")
        wait_until(f"no copy of {topic} is left", lambda: not flow.copied_now(), timeout=180)
