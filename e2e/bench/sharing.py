"""What several pytest workers share: locks, and one API server. The first worker that needs it starts it.

The worker that started it stops it when no other worker uses it any more; the server cannot outlive that worker.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from e2e.bench.kube import KubeCluster, kube_cluster

DIRECTORY = "E2E_SHARED_DIRECTORY"
"""The shared directory of a run with several workers; if it is not set, a process starts its own servers."""


@contextlib.contextmanager
def shared_kube_cluster(keep_logs: Callable[[], bool]) -> Iterator[KubeCluster]:
    """The API server of all workers; the worker that started it leaves the `with` when no other worker uses it."""
    place = _directory() / "api-server.json"
    started: KubeCluster | None = None
    try:
        with locked("api-server", exclusive=False):
            with locked("api-server-start", exclusive=True):
                if not place.exists():
                    started = kube_cluster().start()
                    written = place.with_suffix(".new")
                    written.write_text(json.dumps([str(started.admin_kubeconfig), str(started.kubectl_path)]))
                    written.rename(place)
            if started is not None:
                yield started
                return
            cluster = KubeCluster(*map(Path, json.loads(place.read_text()))).start()
            try:
                yield cluster
            finally:
                cluster.close(keep_logs=keep_logs())
    finally:
        if started is not None:
            with locked("api-server", exclusive=True):
                place.unlink(missing_ok=True)
                started.close(keep_logs=keep_logs())


@contextlib.contextmanager
def locked(name: str, *, exclusive: bool) -> Iterator[None]:
    """Hold a lock of the whole run, shared or exclusive."""
    with (_directory() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield


def _directory() -> Path:
    return Path(os.environ[DIRECTORY])
