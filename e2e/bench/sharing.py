"""One API server for several pytest workers: the first worker starts and owns it, the others find it by a file.

The owner stops it when no worker uses it any more. The server is a child of the owner and cannot outlive it.
"""

import contextlib
import fcntl
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from e2e.bench.kube import KubeCluster, kube_cluster
from e2e.bench.waiting import wait_until

DIRECTORY = "E2E_SHARED_DIRECTORY"
"""The shared directory of a run with several workers; if it is not set, a process starts its own servers."""
OWNER = "gw0"
_START_SECONDS = 180


def owns() -> bool:
    """Whether this process is the one that starts the API server."""
    return os.environ.get("PYTEST_XDIST_WORKER", OWNER) == OWNER


@contextlib.contextmanager
def shared_kube_cluster(keep_logs: Callable[[], bool]) -> Iterator[KubeCluster]:
    """The API server of all workers; the owner leaves the `with` when no other worker uses it."""
    place = _directory() / "api-server.json"
    if not owns():
        with locked("api-server", exclusive=False):
            wait_until(f"the owner of the API server writes {place}", place.exists, timeout=_START_SECONDS)
            cluster = KubeCluster(*map(Path, json.loads(place.read_text()))).start()
            try:
                yield cluster
            finally:
                cluster.close(keep_logs=keep_logs())
        return
    cluster = kube_cluster().start()
    try:
        written = place.with_suffix(".new")
        written.write_text(json.dumps([str(cluster.admin_kubeconfig), str(cluster.kubectl_path)]))
        written.rename(place)
        yield cluster
    finally:
        with locked("api-server", exclusive=True):
            place.unlink()
            cluster.close(keep_logs=keep_logs())


@contextlib.contextmanager
def locked(name: str, *, exclusive: bool) -> Iterator[None]:
    """Hold a lock of the whole run, shared or exclusive."""
    with (_directory() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield


def _directory() -> Path:
    return Path(os.environ[DIRECTORY])
