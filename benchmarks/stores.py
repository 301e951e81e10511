"""Times the plan and origin stores on a real API server at 200,000 partitions, and reports the stored size.

python -m benchmarks.stores
"""

import asyncio
import base64
import gzip
import json
import os
import random
import statistics
import time
from dataclasses import replace
from datetime import UTC, datetime

from e2e.bench.kube import kube_cluster

from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.store import OriginStore, PlanStore
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Origin
from kafka_rebalance.model.topology import TopicPartition, replicas_of

TOPICS = 2_000
PARTITIONS_PER_TOPIC = 100
BROKERS = 100
REPLICAS = 3
RUNS = 3
NAMESPACE = "benchmark"
STEPS = ("save plan", "load plan", "append origins", "load origins")


def hard_plan(seed: int) -> Plan:
    """Every partition moves between random brokers and has a random size, so that the plan hardly compresses."""
    chance = random.Random(seed)
    rows = []
    for topic in range(TOPICS):
        topic_id = base64.urlsafe_b64encode(chance.randbytes(16)).decode().rstrip("=")
        for number in range(PARTITIONS_PER_TOPIC):
            tp = TopicPartition(f"team-{topic % 37}.service-{topic:05d}.events", number)
            current, target = (replicas_of(*chance.sample(range(BROKERS), REPLICAS)) for _ in range(2))
            rows.append(PlannedPartition(tp, current, target, topic_id, chance.randrange(10 * 2**30)))
    return Plan(tuple(sorted(rows)), Certificate(len(rows), optimal=False))


def origins_of(plan: Plan) -> list[Origin]:
    """Origins as recorded before the first move; one partition in ten is not led by its preferred leader."""
    chance = random.Random(1)
    return [Origin(p.tp, p.topic_id, p.current, p.current[chance.random() < 0.1]) for p in plan.partitions]


def bare(plan: Plan) -> None:
    """The minimum cost of storing a plan: rows to gzipped JSON and back, without objects, hash or API server."""
    rows = [(*p.tp, p.current, p.target, p.topic_id, p.size_bytes) for p in plan.partitions]
    json.loads(gzip.decompress(gzip.compress(json.dumps(rows).encode(), 5)))


async def timed(work):
    started = time.perf_counter()
    result = await work
    return time.perf_counter() - started, result


async def measure(client: KubeClient, uid: str, plan: Plan) -> tuple[list[float], float]:
    """Seconds of each step, and the CPU seconds of this process for all steps.

    The plan's hash is computed on save and again on load.
    """
    plans, records, origins = PlanStore(client), OriginStore(client), origins_of(plan)
    spent = time.process_time()
    saving, _ = await timed(plans.save(uid, "spec", "cluster", replace(plan), datetime.now(UTC)))
    loading, stored = await timed(plans.load(uid, "spec"))
    appending, appended = await timed(records.append(uid, "run", origins))
    reading, loaded = await timed(records.load(uid, "run"))
    spent = time.process_time() - spent
    assert stored is not None
    assert stored.plan == plan
    assert loaded == appended == {origin.tp: origin for origin in origins}
    return [saving, loading, appending, reading], spent


async def stored_bytes(client: KubeClient) -> int:
    maps = await client.list_config_maps({})
    return sum(len(base64.b64decode(piece)) for found in maps for piece in (found.get("binaryData") or {}).values())


async def compare(kubeconfig: str) -> None:
    client = KubeClient.connect(NAMESPACE, kubeconfig=kubeconfig)
    print(*(f"{title:>14}" for title in (*STEPS, "together s", "own CPU s", "x bare", "MB stored", "load average")))
    totals = []
    for run in range(RUNS):
        plan = hard_plan(run)
        baseline, _ = await timed(asyncio.to_thread(bare, plan))
        before = await stored_bytes(client)
        seconds, spent = await measure(client, f"resource-{run}", plan)
        totals.append(sum(seconds))
        megabytes = (await stored_bytes(client) - before) / 1e6
        numbers = (*seconds, totals[-1], spent, totals[-1] / baseline, megabytes, os.getloadavg()[0])
        print(*(f"{number:>14.2f}" for number in numbers))
    print(f"median {statistics.median(totals):.2f} s, {min(totals):.2f}-{max(totals):.2f}")
    await client.close()


def main() -> None:
    partitions = TOPICS * PARTITIONS_PER_TOPIC
    print(f"{partitions} partitions in {TOPICS} topics, RF {REPLICAS}, {BROKERS} brokers; {os.cpu_count()} cores")
    with kube_cluster() as cluster:
        cluster.kubectl("create", "namespace", NAMESPACE)
        asyncio.run(compare(str(cluster.admin_kubeconfig)))
        cluster.kubectl("delete", "namespace", NAMESPACE, "--wait=false")


if __name__ == "__main__":
    main()
