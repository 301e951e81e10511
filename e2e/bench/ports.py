"""Loopback ports that stay reserved for this process, over any number of broker restarts.

A free port from the kernel may be taken by an outgoing connection before, or between, the starts of its server. These
ports are below the kernel's ephemeral range, and a lock file keeps other benches from using them.
"""

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path
from typing import IO

_RANGE = range(15_000, 29_000)  # below 30000: the node ports of Kubernetes
_held: dict[int, IO[str]] = {}


def reserve_port() -> int:
    """A port on 127.0.0.1 that is not in use and that no other bench gets."""
    directory = Path(tempfile.gettempdir()) / f"kafka-rebalance-bench-ports-{os.getuid()}"
    directory.mkdir(exist_ok=True)
    for port in random.sample(_RANGE, len(_RANGE)):
        lock = (directory / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        _held[port] = lock
        return port
    raise RuntimeError(f"no free port between {_RANGE.start} and {_RANGE.stop}")


def release_port(port: int) -> None:
    """Release a port."""
    _held.pop(port).close()
