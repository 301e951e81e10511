"""What Kafka's own tools report before and after, and the checks against it."""

import json
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from confluent_kafka.admin import ConfigResource

from e2e.bench.judge import Judge, Key, PartitionState, Reassignment
from e2e.bench.kafka import KafkaCluster
from e2e.demo.screen import Screen

_LOG_DIRS = "org.apache.kafka.tools.LogDirsCommand"


@dataclass(frozen=True)
class Facts:
    """The state of the cluster at one moment; keys of `throttles` are "broker 4" or "topic orders".

    Counts per broker exclude Kafka's internal topics, which a rebalance does not move unless it must.
    """

    partitions: Mapping[Key, PartitionState]
    bytes_on: Mapping[int, int]
    in_flight: Mapping[Key, Reassignment]
    throttles: Mapping[str, Mapping[str, str]]

    @property
    def replicas_on(self) -> Counter[int]:
        """Replicas per broker."""
        return Counter(
            broker for key, state in self.partitions.items() if not _internal(key[0]) for broker in state.replicas
        )

    @property
    def leaders_on(self) -> Counter[int]:
        """Leaders per broker."""
        return Counter(state.leader for key, state in self.partitions.items() if not _internal(key[0]) and state.leader)

    @property
    def placement(self) -> dict[Key, tuple[int, ...]]:
        """Replicas per partition, preferred leader first."""
        return {key: state.replicas for key, state in self.partitions.items()}


def observe(cluster: KafkaCluster) -> Facts:
    """Query Kafka's tools in parallel, because each one starts a JVM."""
    judge = Judge(cluster)
    with ThreadPoolExecutor() as pool:
        partitions = pool.submit(judge.describe_topics)
        sizes = pool.submit(_bytes_per_broker, cluster)
        in_flight = pool.submit(judge.list_reassignments)
        throttles = pool.submit(judge.throttles)
        return Facts(partitions.result(), sizes.result(), in_flight.result(), throttles.result())


def moved_from(origin: Facts, cluster: KafkaCluster) -> int:
    """Number of partitions whose replicas differ from `origin`; queries the brokers, which is faster than a JVM."""
    known = cluster.admin().list_topics(timeout=30).topics
    return sum(
        tuple(known[topic].partitions[number].replicas) != replicas
        for (topic, number), replicas in origin.placement.items()
    )


def throttle_of(cluster: KafkaCluster, broker: int) -> int | None:
    """The follower rate that is set on a broker, in bytes per second."""
    resource = ConfigResource(ConfigResource.Type.BROKER, str(broker))
    admin = cluster.admin()  # keep a reference: the futures of a collected client fail
    entry = admin.describe_configs([resource])[resource].result(timeout=30).get("follower.replication.throttled.rate")
    return int(entry.value) if entry is not None and entry.value else None


def moves_between(before: Facts, after: Facts) -> int:
    """Number of replicas on brokers that did not hold the partition before."""
    old = before.placement
    return sum(len(set(replicas) - set(old[key])) for key, replicas in after.placement.items() if not _internal(key[0]))


def show(screen: Screen, cluster: KafkaCluster, before: Facts, after: Facts | None = None) -> None:
    """Print a table per broker: replicas, leaders and bytes, before and, if given, after."""
    moments = [("before", before)] if after is None else [("before", before), ("after", after)]
    head = ["broker (rack)"]
    head += [f"{what} {when}" for what in ("replicas", "leaders", "bytes") for when, _ in moments]
    rows = [
        [
            f"{broker} ({cluster.racks[broker]})",
            *(str(facts.replicas_on[broker]) for _, facts in moments),
            *(str(facts.leaders_on[broker]) for _, facts in moments),
            *(_mib(facts.bytes_on[broker]) for _, facts in moments),
        ]
        for broker in cluster.brokers
    ]
    screen.table("Per broker, as Kafka's TopicCommand and LogDirsCommand see it", head, rows)


def check_restored(screen: Screen, kafka: KafkaCluster, origin: Facts) -> None:
    """Kafka's own tool confirms that all replicas are where they were."""
    wrong = Judge(kafka).verify(origin.placement)
    screen.check(
        f"all {len(origin.placement)} partitions have the replicas they had before, in the same order "
        "(kafka-reassign-partitions --verify)",
        holds=not wrong,
        otherwise=wrong[:5],
    )


def check_tidy(screen: Screen, facts: Facts) -> None:
    """Check the conditions for every end of a rebalance."""
    behind = [key for key, state in facts.partitions.items() if set(state.replicas) - state.isr]
    screen.check(
        "no reassignment is in flight (kafka-reassign-partitions --list)",
        holds=not facts.in_flight,
        otherwise=sorted(facts.in_flight)[:5],
    )
    screen.check(
        "no throttle is left on any broker or topic (kafka-configs --describe)",
        holds=not facts.throttles,
        otherwise=dict(list(facts.throttles.items())[:5]),
    )
    screen.check("every replica is in sync (kafka-topics --describe)", holds=not behind, otherwise=sorted(behind)[:5])


def check_replicas(screen: Screen, cluster: KafkaCluster, facts: Facts) -> None:
    """Check that every broker holds R or R+1 replicas, and that no rack holds a partition twice."""
    _check_even(screen, cluster, "replicas", facts.replicas_on)
    crowded = [
        key
        for key, replicas in facts.placement.items()
        if len({cluster.racks[broker] for broker in replicas}) < len(replicas)
    ]
    screen.check("the replicas of each partition are in different racks", holds=not crowded, otherwise=crowded[:5])


def check_leaders(screen: Screen, cluster: KafkaCluster, facts: Facts) -> None:
    """Check that every broker leads L or L+1 partitions."""
    _check_even(screen, cluster, "leaders", facts.leaders_on)


def _check_even(screen: Screen, cluster: KafkaCluster, what: str, found: Counter[int]) -> None:
    counts = [found[broker] for broker in cluster.brokers]
    screen.check(
        f"all brokers hold equally many {what}, give or take one",
        holds=max(counts) - min(counts) <= 1,
        otherwise=counts,
    )


def _bytes_per_broker(cluster: KafkaCluster) -> dict[int, int]:
    said = cluster.run_tool(_LOG_DIRS, "--bootstrap-server", cluster.bootstrap_servers, "--describe")
    listing = json.loads(next(line for line in said.splitlines() if line.startswith("{")))
    return {
        broker["broker"]: sum(
            replica["size"]
            for place in broker["logDirs"]
            for replica in place["partitions"]
            if not _internal(replica["partition"])
        )
        for broker in listing["brokers"]
    }


def _internal(topic: str) -> bool:
    return topic.startswith("__")


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
