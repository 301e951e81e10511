"""The environment of the demo: brokers with records, an API server, the operator, and traffic."""

import contextlib
import os
import queue
import threading
from collections.abc import Callable
from pathlib import Path

from e2e.bench.kube import kube_cluster
from e2e.bench.operator import OperatorProcess
from e2e.demo.broker_stage import BrokerStage
from e2e.demo.layout import Layout

NAMESPACE = "kafka"


class Stage(BrokerStage):
    """Kafka with records, Kubernetes, the operator, and producers and consumers."""

    def __init__(self, layout: Layout) -> None:
        super().__init__(layout)
        self.kube = kube_cluster()
        self.lake = self.directory / "lake"
        self.operator = OperatorProcess(self.kube, "--all-namespaces", "--load-models", str(self.lake / "models"))

    @property
    def logs(self) -> list[Path]:
        """The directories with the logs of the servers."""
        return [*super().logs, self.kube.directory]

    def start(self, say: Callable[[str], None]) -> None:
        """Start everything, Kafka and Kubernetes in parallel, and write the records."""
        _together(lambda: self._start_kafka(say), lambda: self._start_kube(say))

    def environment(self) -> dict[str, str]:
        """The environment variables that a shell needs to use this cluster as its administrator."""
        path = f"{self.commands}:{os.environ['PATH']}"
        return {**os.environ, "KUBECONFIG": str(self.kube.admin_kubeconfig), "PATH": path}

    @property
    def commands(self) -> str:
        """The directories of kafka-rebalance and kubectl, for PATH."""
        return f"{super().commands}:{self.kube.kubectl_path.parent}"

    def close(self, *, keep_logs: bool) -> None:
        """Stop all processes and delete everything except the logs, if they are to be kept."""
        with contextlib.ExitStack() as stack:
            stack.callback(super().close, keep_logs=keep_logs)
            stack.callback(self.kube.close, keep_logs=keep_logs)
            stack.callback(self.operator.close)

    def _start_kube(self, say: Callable[[str], None]) -> None:
        self.kube.start()
        say("Kubernetes: etcd, the API server and the controller manager are up")
        self.operator.install()
        self.kube.apply(f"apiVersion: v1\nkind: Namespace\nmetadata: {{name: {NAMESPACE}}}\n")
        self.operator.start()
        say("CRDs and roles are applied; the operator runs under its own service account")


def _together(*works: Callable[[], None]) -> None:
    """Run in parallel; the first failure is raised at once. Ctrl-C does not wait for the others."""
    outcomes: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except Exception as error:  # noqa: BLE001 - the main thread raises any exception
            outcomes.put(error)
        else:
            outcomes.put(None)

    for work in works:
        threading.Thread(target=guarded, args=(work,), daemon=True).start()
    for _ in works:
        if (error := outcomes.get()) is not None:
            raise error
