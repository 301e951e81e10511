"""Fifty rebalances on ten Kafka clusters in one operator, while one of the clusters hangs: `python -m e2e.fleet`.

Each cluster has two brokers, and five topics on the first of them; five rebalances move half of each to the second. In
the first round all clusters are healthy. In the second, the processes of one cluster are suspended (SIGSTOP:
connections stay open, but nothing answers) before five more rebalances are applied to each. It prints how long the
other nine clusters took in each round, and checks that the hanging cluster is reported and completes when it resumes.
Needs about 10 GB; run manually.
"""

import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence

from e2e.bench.kafka import KafkaCluster
from e2e.bench.kafka_properties import CONTROLLER_ID
from e2e.bench.kube import KubeCluster, kube_cluster
from e2e.bench.load import create_topics, fill
from e2e.bench.operator import OperatorProcess
from e2e.bench.waiting import wait_until

CLUSTERS = 10
REBALANCES = 5
PARTITIONS = 4
BYTES = 100_000
_MINUTES = 10


def main() -> None:
    """Run both rounds; raises a time-out if a rebalance does not end as expected."""
    with contextlib.ExitStack() as stack:
        kube = stack.enter_context(kube_cluster())
        clusters = [stack.enter_context(KafkaCluster({1: "r1", 2: "r2"})) for _ in range(CLUSTERS)]
        operator = OperatorProcess(kube).install().start()
        stack.callback(operator.close)
        _say(f"{CLUSTERS} clusters, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        healthy = _round(kube, clusters, "healthy", clusters)
        with _hanging(clusters[-1]):
            others = _round(kube, clusters, "hanging", clusters[:-1])
            unreachable = {"KafkaUnreachable"}
            wait_until(
                "the hanging cluster's rebalances say so",
                lambda: set(_reasons(kube, "hanging", CLUSTERS - 1)) == unreachable,
                timeout=120,
            )
            _say("the hanging cluster's rebalances say KafkaUnreachable")
        left = _wait(kube, "hanging", [CLUSTERS - 1])
        _say(f"after it went on, they had succeeded {max(left):.1f} s later")
        _say(f"last done: {max(healthy):.1f} s with ten healthy clusters, {max(others):.1f} s of nine beside it")
        _say(f"load {os.getloadavg()[0]:.1f}")


def _round(
    kube: KubeCluster, clusters: Sequence[KafkaCluster], name: str, waited_for: Sequence[KafkaCluster]
) -> list[float]:
    """Apply five rebalances to each cluster; returns the seconds until those in `waited_for` had succeeded."""
    bodies = []
    for at, cluster in enumerate(clusters):
        for number in range(REBALANCES):
            topic = f"{name}-{number}"
            if cluster in waited_for:
                _fill(cluster, topic)
            bodies.append(_rebalance(f"{name}-{at}-{number}", topic, cluster))
    kube.apply("\n---\n".join(json.dumps(body) for body in bodies))
    return _wait(kube, name, range(len(waited_for)))


def _fill(cluster: KafkaCluster, topic: str) -> None:
    create_topics(cluster, {topic: [[1]] * PARTITIONS})
    fill(cluster, {(topic, partition): BYTES for partition in range(PARTITIONS)})


def _rebalance(name: str, topic: str, cluster: KafkaCluster) -> dict[str, object]:
    kafka = {"bootstrapServers": cluster.bootstrap_servers}
    spec = {"kafka": kafka, "topics": {"include": [topic]}, "throttle": {"unlimited": True}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "kafkarebalance.dev/v1alpha1", "kind": "KafkaRebalance", "metadata": metadata, "spec": spec}


def _wait(kube: KubeCluster, name: str, clusters: Sequence[int]) -> list[float]:
    """Seconds until each rebalance of these clusters had succeeded."""
    begun = time.monotonic()
    done: dict[str, float] = {}
    wanted = {f"{name}-{at}-{number}" for at in clusters for number in range(REBALANCES)}

    def all_done() -> bool:
        for key, reason in _states(kube).items():
            if key in wanted and reason == "Succeeded":
                done.setdefault(key, time.monotonic() - begun)
        return done.keys() == wanted

    wait_until(f"{len(wanted)} rebalances have succeeded", all_done, timeout=_MINUTES * 60, every=0.5)
    return list(done.values())


def _reasons(kube: KubeCluster, name: str, cluster: int) -> list[str]:
    states = _states(kube)
    return [states[f"{name}-{cluster}-{number}"] for number in range(REBALANCES)]


def _states(kube: KubeCluster) -> dict[str, str]:
    rows = kube.get("kafkarebalances.kafkarebalance.dev", "-n", "default")["items"]
    found = {}
    for row in rows:
        ready = [c["reason"] for c in row.get("status", {}).get("conditions", []) if c["type"] == "Ready"]
        found[row["metadata"]["name"]] = ready[0] if ready else ""
    return found


@contextlib.contextmanager
def _hanging(cluster: KafkaCluster) -> Iterator[None]:
    pids = [cluster.pid(node) for node in (*cluster.brokers, CONTROLLER_ID)]
    # Create its topics while it still answers.
    for number in range(REBALANCES):
        _fill(cluster, f"hanging-{number}")
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
