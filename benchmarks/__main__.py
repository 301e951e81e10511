"""Times planning against a from-scratch placement of the same cluster; prints ratios, cluster sizes and machine load.
Then the CPU time that the program takes to start.

python -m benchmarks
"""

import os
import random
import statistics
import time
from collections import Counter

from benchmarks import startup
from kafka_rebalance.model.topology import Broker, BrokerId, TopicPartition
from kafka_rebalance.planning import PartitionInput, PlanRequest, plan

SIZES = [(1_000, 30), (5_000, 60), (10_000, 100)]
RACKS = 3
REPLICAS = 3
RUNS = 3


def striped(partitions: int, brokers: int) -> list[tuple[int, ...]]:
    """Round-robin placement over racks and brokers, as for new topics; ignores the current replicas."""
    return [
        tuple((p + r * (1 + p // brokers % (brokers - 1))) % brokers for r in range(REPLICAS))
        for p in range(partitions)
    ]


def racked(partitions: int, brokers: int, seed: int) -> list[tuple[int, ...]]:
    """A balanced rack-aware placement: one replica per rack, shuffled leaders."""
    rng = random.Random(seed)
    rows = []
    for p in range(partitions):
        row = [(p // RACKS + k * 7) % (brokers // RACKS) * RACKS + k for k in range(RACKS)]
        rng.shuffle(row)
        rows.append(tuple(row))
    return rows


def add_a_tenth(partitions: int, brokers: int, seed: int) -> PlanRequest:
    """A balanced cluster to which 10 % new, empty brokers are added."""
    grown = brokers + brokers // 10 // RACKS * RACKS
    rows = racked(partitions, brokers // RACKS * RACKS, seed)
    known = tuple(Broker(BrokerId(b), f"rack-{b % RACKS}") for b in range(grown))
    inputs = tuple(
        PartitionInput(TopicPartition(f"topic-{p % 50}", p // 50), tuple(BrokerId(b) for b in row))
        for p, row in enumerate(rows)
    )
    return PlanRequest(known, inputs, frozenset(b.id for b in known))


def timed(work) -> tuple[float, object]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def main() -> None:
    print(f"load average {os.getloadavg()[0]:.2f} on {os.cpu_count()} cores; RF {REPLICAS}, {RACKS} racks, add 10 %")
    titles = {"partitions": 10, "brokers": 8, "plan s": 8, "min-max": 12, "x striped": 10, "moves": 8, "bound": 8}
    print(*(f"{title:>{width}}" for title, width in titles.items()), "proved")
    for partitions, brokers in SIZES:
        seconds, baseline, made = [], [], None
        for seed in range(RUNS):
            request = add_a_tenth(partitions, brokers, seed)
            took, made = timed(lambda request=request: plan(request))
            seconds.append(took)
            baseline.append(timed(lambda p=partitions, b=brokers: Counter(striped(p, b)))[0])
        median = statistics.median(seconds)
        ratio = median / statistics.median(baseline)
        spread = f"{min(seconds):.2f}-{max(seconds):.2f}"
        print(
            f"{partitions:>10} {brokers:>8} {median:>8.2f} {spread:>12} {ratio:>10.0f} "
            f"{made.replica_moves:>8} {made.certificate.lower_bound:>8} {made.certificate.optimal}"
        )
    print()
    startup.main()


if __name__ == "__main__":
    main()
