"""What the rounds of an engine cost: CPU, slices of the event loop, requests, memory and status, by planned partitions.

python -m benchmarks.engine [--planned 2000 20000 200000] [--rounds 40] [--write docs/benchmarks.md]

The engine is the operator's; Kafka and the API server are in memory (`engine_cluster`), and what they cost is
subtracted. What the client libraries need to parse the answers of real brokers is not measured. Brokers are doubled,
so three of four partitions move, 1,000 at a time, and 30 copies arrive in each round (10 with 2,000 planned), however
many were begun. A round takes one second of the engine's clock. Each size runs in its own process.
"""

import argparse
import asyncio
import json
import logging
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.planning_row import status
from benchmarks.results_page import publish

HEAD = [
    "planned", "CPU ms per round", "with all read", "longest slice ms", "open: s of CPU", "its longest slice ms",
    "restart: s of CPU", "its longest slice ms", "dead broker: CPU ms", "its longest slice ms", "requests",
    "partitions read", "API server", "config, log dirs", "status bytes", "MB", "load",
]  # fmt: skip
BEGIN, END = "<!-- engine -->", "<!-- end of engine -->"
SIZES = (2_000, 20_000, 200_000)
BROKERS = 60
IN_FLIGHT = 1_000
ARRIVING = 30
_FULL = 950
"""In flight, from which on copies arrive: the limit also counts calls without a copy, which are not in flight."""
_SETTLING = 15


def engine_of(info: Any, kafka: Any, kube: Any, clock: Any) -> Any:
    """The operator's engine of one cluster, without load models and history."""
    from kafka_rebalance.kube.ledger_store import LedgerStore
    from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
    from kafka_rebalance.reconcile.act.resources import Resources
    from kafka_rebalance.reconcile.engine import ClusterEngine
    from kafka_rebalance.reconcile.engine_parts import EngineParts
    from kafka_rebalance.reconcile.state.record import Stores
    from kafka_rebalance.reconcile.throttle.throttle_keeper import ThrottleKeeper

    async def no_model(_cluster_id: str) -> None:
        return None

    stores = Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
    keeper = ThrottleKeeper(info.cluster_id, kafka, LedgerStore(kube), clock.monotonic)
    resources = Resources(kube, clock.now)
    return ClusterEngine(EngineParts(info, kafka, resources, stores, keeper, no_model, lambda: None, clock))


class Bench:
    """One engine with one rebalance that moves about this many partitions, in this process."""

    def __init__(self, planned: int) -> None:
        from tests.fakes.kube_in_memory import KubeInMemory
        from tests.fakes.stopped_clock import StoppedClock

        from benchmarks.engine_cluster import LargeCluster, Meter, Metered
        from kafka_rebalance.app.allocator import return_freed_memory
        from kafka_rebalance.model.bulk import collect_rarely

        collect_rarely()
        return_freed_memory()
        self.meter, self.clock = Meter(), StoppedClock()
        self.cluster, self.server = LargeCluster(planned * 4 // 3, BROKERS), KubeInMemory()
        self.kafka = Metered(self.cluster, self.meter, kind="kafka")
        self.kube = Metered(self.server, self.meter, kind="kube")
        self.before_mb = status("VmRSS")
        self.most_arriving, self.arriving = min(ARRIVING, planned // 200), 0
        self.start()

    def start(self) -> None:
        """Start the operator, or start it again: only stored state is left."""
        from kafka_rebalance.reconcile.state.rebalance import Rebalance

        self.engine = engine_of(self.cluster.info, self.kafka, self.kube, self.clock)
        for body in self.server.resources.values():
            self.engine.rebalances[body["metadata"]["uid"]] = Rebalance.of(body)

    def apply(self) -> None:
        """Apply a KafkaRebalance that balances the cluster."""
        from tests.fakes.stopped_clock import NOON

        from kafka_rebalance.api.v1alpha1 import REBALANCES
        from kafka_rebalance.reconcile.state.rebalance import Rebalance

        per_broker = {"in": IN_FLIGHT, "out": IN_FLIGHT}
        execution = {"parallelPartitionCount": IN_FLIGHT, "parallelReplicaCount": 3, "maxPerBroker": per_broker}
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "execution": execution}
        metadata = {"name": "r", "namespace": "kafka", "uid": "u-1", "creationTimestamp": NOON.isoformat()}
        body = self.server.create(REBALANCES, {"metadata": metadata, "spec": spec})
        self.engine.rebalances["u-1"] = Rebalance.of(body)

    @property
    def rebalance(self) -> Any:
        """The rebalance as the engine holds it."""
        return self.engine.rebalances["u-1"]

    @property
    def status_bytes(self) -> int:
        """The size of the status as it is stored."""
        return len(json.dumps(next(iter(self.server.resources.values()))["status"]))

    async def round(self) -> float:
        """One round; returns its CPU seconds, in all threads."""
        began, fake = time.process_time(), self.meter.fake_seconds
        await self.engine.tick()
        used = time.process_time() - began - (self.meter.fake_seconds - fake)
        self.clock.at += timedelta(seconds=1)
        self.cluster.advance(self.arriving)
        if self.rebalance.memory.problem is not None:
            raise RuntimeError(self.rebalance.memory.problem)
        return used

    async def until(self, holds: Callable[[], bool]) -> tuple[float, float]:
        """CPU seconds and the longest slice, until it holds; planning included."""
        self.meter.clear()
        began = time.process_time()
        while not holds():
            if (run := self.rebalance.record.run) is not None and not run.open:
                raise RuntimeError("the run has ended before that")
            await self.round()
            planning = self.rebalance.memory.planning
            if planning is not None:
                await asyncio.wait([planning])
        return time.process_time() - began - self.meter.fake_seconds, max(self.meter.slices, default=0.0)

    async def measured(self, rounds: int) -> dict[str, Any]:
        """Everything, in this order: open, rounds, restart, a dead broker."""
        self.meter.watch()
        self.apply()
        opened = await self.until(lambda: bool(self.cluster.in_flight))
        await self.until(lambda: self.cluster.in_flight >= _FULL)
        self.arriving = self.most_arriving
        for _ in range(_SETTLING):
            await self.round()
        self.meter.clear()
        each = [await self.round() for _ in range(rounds)]
        slices, requests, brokers = list(self.meter.slices), self.meter.requests, self.meter.per_broker
        peak = status("VmHWM")
        self.start()
        await asyncio.sleep(0)  # to free the engine before is a slice of no round
        restarted = await self.until(lambda: self.rebalance.assessment.statuses.copying)
        for _ in range(_SETTLING):
            await self.round()
        # The dead broker's copies stay in flight, and the gate closes.
        self.arriving = 0
        self.cluster.die(max(self.cluster.brokers))
        await asyncio.sleep(0)  # that the cluster in memory has changed is no slice of the engine
        self.meter.clear()
        dead = [await self.round() for _ in range(6)]
        return {
            "planned": len(self.rebalance.record.moves),
            "round": statistics.median(each),
            "worst round": max(each),
            "slice": max(slices),
            "open": opened,
            "restart": restarted,
            "dead": (max(dead), max(self.meter.slices)),
            "requests": requests["cluster"] / rounds,
            "described": requests["described"] / rounds,
            "API server": requests["API server"] / rounds,
            "per broker": {
                kind: max((count for (what, _), count in brokers.items() if what == kind), default=0) * 10 / rounds
                for kind in ("config", "log dirs")
            },
            "status": self.status_bytes,
            "MB": (peak, self.before_mb),
            "load": os.getloadavg()[0],
        }


def row_of(found: dict[str, Any]) -> list[str]:
    """The cells of a table row."""

    def ms(seconds: float) -> str:
        return f"{seconds * 1000:,.0f}"

    return [
        f"{found['planned']:,}", ms(found["round"]), ms(found["worst round"]), ms(found["slice"]),
        f"{found['open'][0]:.1f}", ms(found["open"][1]), f"{found['restart'][0]:.1f}", ms(found["restart"][1]),
        ms(found["dead"][0]), ms(found["dead"][1]), f"{found['requests']:.1f}", f"{found['described']:,.0f}",
        f"{found['API server']:.1f}",
        ", ".join(f"{count:.1f}" for count in found["per broker"].values()), f"{found['status']:,}",
        f"{found['MB'][0]:.0f} ({found['MB'][1]:.0f})", f"{found['load']:.1f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--planned", type=int, nargs="+", default=SIZES)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    parser.add_argument("--row", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.row:
        logging.disable(logging.INFO)
        print(json.dumps(asyncio.run(Bench(options.row).measured(options.rounds))))
        return
    facts = f"Measured on: {measured_on(machine())}."
    lines = [facts, "", line(HEAD), line(["---"] * len(HEAD))]
    print("\n".join(lines), flush=True)
    for planned in options.planned:
        argv = [sys.executable, "-m", "benchmarks.engine", "--row", str(planned), "--rounds", str(options.rounds)]
        answer = subprocess.run(argv, check=True, stdout=subprocess.PIPE).stdout
        lines.append(line(row_of(json.loads(answer))))
        print(lines[-1], flush=True)
    if options.write:
        publish("\n".join(lines), options.write, BEGIN, END)


if __name__ == "__main__":
    main()
