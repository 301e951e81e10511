"""What a large rebalance costs the other clusters of its operator: their rounds with it and without it.

python -m benchmarks.neighbours [--clusters 50] [--planned 200000] [--seconds 60] [--write docs/benchmarks.md]

One process has an engine for each cluster, in real time. In each small cluster 100 partitions are planned and ten are
in flight; nothing arrives, so the engine looks each half second. The large one has 1,000 in flight, and 50 copies
arrive each second. Clusters are in memory (`engine_cluster`). The answers of the large one are computed in threads,
like the parsing of the answers of real brokers.
"""

import argparse
import asyncio
import logging
import os
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.engine import ARRIVING, BROKERS, IN_FLIGHT, engine_of
from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.results_page import publish

BEGIN, END = "<!-- neighbours -->", "<!-- end of neighbours -->"
HEAD = [
    "other clusters", "beside them", "rounds of one per minute", "round ms: median", "95 of 100", "longest",
    "event loop late ms: 99 of 100", "longest", "CPU s per minute", "rounds of the large one per minute", "load",
]  # fmt: skip
_PARTITIONS = 100
_AT_ONCE = 10
_HEARTBEAT = 0.01


class _RealClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()


class _InThreads:
    """A cluster whose answers are made in threads."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._cluster, name)

        async def call(*args: Any, **more: Any) -> Any:
            return await asyncio.to_thread(_answer, found, args, more)

        return call if asyncio.iscoroutinefunction(found) else found


def _answer(call: Any, args: tuple[Any, ...], more: dict[str, Any]) -> Any:
    """The result of a coroutine function that waits for nothing."""
    try:
        call(*args, **more).send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("it waits")


class Engine:
    """One cluster with a rebalance, and the seconds that each round took."""

    def __init__(self, name: str, partitions: int, brokers: int, at_once: int) -> None:
        from tests.fakes.kube_in_memory import KubeInMemory

        from benchmarks.engine_cluster import LargeCluster
        from kafka_rebalance.api.v1alpha1 import REBALANCES
        from kafka_rebalance.reconcile.state.rebalance import Rebalance

        self.cluster, kube, clock = LargeCluster(partitions, brokers), KubeInMemory(), _RealClock()
        kafka = _InThreads(self.cluster) if partitions > _PARTITIONS else self.cluster
        self.engine = engine_of(self.cluster.info, kafka, kube, clock)
        per_broker = {"in": at_once, "out": at_once}
        execution = {
            "parallelPartitionCount": at_once, "parallelReplicaCount": 3, "maxPerBroker": per_broker,
            "stallTimeout": "1d",
        }  # fmt: skip
        spec = {"kafka": {"bootstrapServers": "kafka:9092"}, "execution": execution}
        metadata = {"name": name, "namespace": "kafka", "uid": name, "creationTimestamp": clock.now().isoformat()}
        body = kube.create(REBALANCES, {"metadata": metadata, "spec": spec})
        self.engine.rebalances[name] = Rebalance.of(body)
        self.at_once, self.took = at_once, list[float]()
        tick = self.engine.tick

        async def timed() -> float:
            began = time.monotonic()
            pause: float = await tick()
            self.took.append(time.monotonic() - began)
            return pause

        self.engine.tick = timed

    async def run(self) -> None:
        """Rounds until cancelled."""
        await self.engine.run(lambda: True)


async def _arriving(large: Engine) -> None:
    while True:
        await asyncio.sleep(1)
        large.cluster.advance(max(0, large.cluster.in_flight - IN_FLIGHT + ARRIVING))


async def _until(holds: Callable[[], bool]) -> None:
    while not holds():  # noqa: ASYNC110 - engines of a benchmark do not say what they have done
        await asyncio.sleep(0.1)


async def _heartbeat(late: list[float]) -> None:
    while True:
        began = time.monotonic()
        await asyncio.sleep(_HEARTBEAT)
        late.append(time.monotonic() - began - _HEARTBEAT)


async def measured(clusters: int, planned: int, seconds: float) -> list[list[str]]:
    """The rows of the table: without the large one, while it opens, and while it moves."""
    small = [Engine(f"small-{number}", _PARTITIONS, 10, _AT_ONCE) for number in range(clusters - 1)]
    tasks = [asyncio.create_task(engine.run()) for engine in small]
    await _until(lambda: all(engine.cluster.in_flight for engine in small))
    late = list[float]()
    tasks.append(asyncio.create_task(_heartbeat(late)))
    large: Engine | None = None

    async def row(beside: str, until: Any) -> list[str]:
        for engine in (*small, *([large] if large else [])):
            engine.took.clear()
        late.clear()
        began, cpu = time.monotonic(), time.process_time()
        await _until(lambda: until(time.monotonic() - began))
        minutes, used = (time.monotonic() - began) / 60, time.process_time() - cpu
        took = sorted(seconds for engine in small for seconds in engine.took)
        lags = sorted(late)
        return [
            str(len(small)), beside, f"{len(took) / len(small) / minutes:,.0f}",
            *(f"{1000 * found:,.0f}" for found in (statistics.median(took), took[len(took) * 95 // 100], took[-1])),
            *(f"{1000 * found:,.0f}" for found in (lags[len(lags) * 99 // 100], lags[-1])),
            f"{used / minutes:,.0f}", f"{len(large.took) / minutes:,.0f}" if large else "-",
            f"{os.getloadavg()[0]:.1f}",
        ]  # fmt: skip

    def passed(elapsed: float) -> bool:
        return elapsed >= seconds

    rows = [await row("nothing", passed)]
    large = await asyncio.to_thread(Engine, "large", planned * 4 // 3, BROKERS, IN_FLIGHT)
    cluster = large.cluster
    tasks.append(asyncio.create_task(large.run()))
    rows.append(await row("one that plans and opens", lambda _elapsed: cluster.in_flight > 0))
    tasks.append(asyncio.create_task(_arriving(large)))
    rows.append(await row("one that moves", passed))
    for task in tasks:
        task.cancel()
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=50)
    parser.add_argument("--planned", type=int, default=200_000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    options = parser.parse_args()
    from kafka_rebalance.model.bulk import collect_rarely

    collect_rarely()
    logging.disable(logging.INFO)
    lines = [f"Measured on: {measured_on(machine())}.", "", line(HEAD), line(["---"] * len(HEAD))]
    lines += [line(row) for row in asyncio.run(measured(options.clusters, options.planned, options.seconds))]
    publish("\n".join(lines), options.write, BEGIN, END)


if __name__ == "__main__":
    main()
