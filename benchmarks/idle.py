"""What an operator costs when nothing moves: CPU and API requests, with a hundred resources that have finished.

python -m benchmarks.idle [--resources 100] [--minutes 5] [--write docs/benchmarks.md]

The operator runs as its own process with its watch, Lease and engine, against a real API server (`e2e.bench`). Its
Kafka cluster is in memory. What is measured over some minutes is extrapolated to an hour.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from e2e.bench.kube import kube_cluster
from e2e.bench.waiting import wait_until

from benchmarks.planning import machine
from benchmarks.planning_report import line, measured_on
from benchmarks.results_page import publish

NAMESPACE, OPERATOR = "kafka", "operator"
BEGIN, END = "<!-- idle -->", "<!-- end of idle -->"
HEAD = [
    "finished resources",
    "minutes",
    "CPU s per hour",
    "API requests per hour",
    "Kafka requests per hour",
    "MB",
    "load",
]
_SETTLING_SECONDS = 45
_CRDS = Path(__file__).parents[1] / "crds"


def serve(resources: int) -> None:
    """The operator, with a cluster in memory; a line of JSON on stdout for each line on stdin."""
    import aiohttp
    from tests.fakes.shared_clusters import Cluster
    from urllib3.connectionpool import HTTPConnectionPool

    from kafka_rebalance.app import process

    api, kafka = Counter[str](), Counter[str]()
    send = aiohttp.ClientSession._request  # noqa: SLF001 - the only place where all requests pass

    async def counted(session: Any, method: str, url: Any, **more: Any) -> Any:
        api[_named(method, str(url))] += 1
        return await send(session, method, url, **more)

    aiohttp.ClientSession._request = counted  # type: ignore[method-assign] # noqa: SLF001
    fetch: Any = HTTPConnectionPool.urlopen

    def also_counted(pool: Any, method: str, url: str, *args: Any, **more: Any) -> Any:
        api[_named(method, url)] += 1
        return fetch(pool, method, url, *args, **more)

    HTTPConnectionPool.urlopen = also_counted  # type: ignore[assignment,method-assign]
    rows = [[1, 2], [1, 2], [1, 3]]
    cluster = Cluster(range(1, 7), **{f"t{number}": rows for number in range(resources)})

    class Counted:
        def __getattr__(self, name: str) -> Any:
            kafka[name] += 1
            return getattr(cluster, name)

    async def main() -> None:
        settings = process.Settings("benchmark", own_namespace=OPERATOR)
        operator = asyncio.create_task(process.run_operator(settings))
        while await asyncio.to_thread(sys.stdin.readline):
            used = {"cpu": time.process_time(), "api": dict(api), "kafka": dict(kafka), "at": time.monotonic()}
            print(json.dumps(used | {"MB": _resident()}), flush=True)
        operator.cancel()

    class Clients:
        def connect(self, *_: Any) -> Any:
            return Counted()

        async def close(self) -> None:
            pass

    process.IsolatedClients = Clients  # type: ignore[assignment,misc]
    asyncio.run(main())


def _named(method: str, url: str) -> str:
    """The method and the kind of resource: kopf watches with aiohttp, all else goes through urllib3."""
    path = url.partition("?")[0].split("/")
    kind = next((part for part in reversed(path) if part.endswith("s") and not part.startswith("http")), "others")
    return f"{method.upper()} {kind}"


def _resident() -> float:
    from benchmarks.planning_row import status

    return status("VmRSS")


def measure(resources: int, minutes: float) -> dict[str, Any]:
    """The row of the table."""
    with kube_cluster() as kube:
        kube.kubectl("apply", "--server-side", "-f", str(_CRDS))
        kube.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=240s")
        for name in (NAMESPACE, OPERATOR):
            kube.kubectl("create", "namespace", name)
        kube.kubectl(
            "apply", "-f", "-", stdin=json.dumps({"kind": "List", "apiVersion": "v1", "items": _bodies(resources)})
        )
        argv = [sys.executable, "-m", "benchmarks.idle", "--serve", str(resources)]
        env = {**os.environ, "KUBECONFIG": str(kube.admin_kubeconfig)}
        with subprocess.Popen(argv, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as operator:
            try:
                wait_until("all have finished", lambda: _finished(kube) == resources, timeout=600)
                time.sleep(_SETTLING_SECONDS)
                before = _asked(operator)
                time.sleep(60 * minutes)
                after = _asked(operator)
            finally:
                operator.kill()
    return {"before": before, "after": after, "load": os.getloadavg()[0]}


def _asked(operator: "subprocess.Popen[str]") -> dict[str, Any]:
    assert operator.stdin is not None
    assert operator.stdout is not None
    operator.stdin.write("\n")
    operator.stdin.flush()
    found: dict[str, Any] = json.loads(operator.stdout.readline())
    return found


def _finished(kube: Any) -> int:
    rows = json.loads(kube.kubectl("get", "kafkarebalances", "-n", NAMESPACE, "-o", "json"))["items"]
    ready = [c for row in rows for c in row.get("status", {}).get("conditions", ()) if c["type"] == "Ready"]
    return sum(condition["status"] == "True" for condition in ready)


def _bodies(resources: int) -> list[dict[str, Any]]:
    return [
        {
            "apiVersion": "kafkarebalance.dev/v1alpha1",
            "kind": "KafkaRebalance",
            "metadata": {"name": f"r{number}", "namespace": NAMESPACE},
            "spec": {
                "kafka": {"bootstrapServers": "kafka:9092"},
                "topics": {"include": [f"t{number}"]},
            },
        }
        for number in range(resources)
    ]


def row_of(resources: int, found: dict[str, Any]) -> list[str]:
    """The cells of the row."""
    before, after = found["before"], found["after"]
    seconds = after["at"] - before["at"]

    def hourly(kind: str) -> str:
        parts = {name: count - before[kind].get(name, 0) for name, count in after[kind].items()}
        rates = {name: count * 3600 / seconds for name, count in parts.items() if count}
        return ", ".join(f"{name} {rate:,.0f}" for name, rate in sorted(rates.items(), key=lambda row: -row[1]))

    cpu = (after["cpu"] - before["cpu"]) * 3600 / seconds
    return [
        f"{resources}", f"{seconds / 60:.1f}", f"{cpu:,.0f}", hourly("api"), hourly("kafka"), f"{after['MB']:.0f}",
        f"{found['load']:.1f}",
    ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resources", type=int, default=100)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--write", type=Path, help="the document whose table is replaced")
    parser.add_argument("--serve", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    lines = [f"Measured on: {measured_on(machine())}.", "", line(HEAD), line(["---"] * len(HEAD))]
    lines.append(line(row_of(options.resources, measure(options.resources, options.minutes))))
    publish("\n".join(lines), options.write, BEGIN, END)


if __name__ == "__main__":
    main()
