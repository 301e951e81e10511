"""Loopback ports that stay ours while this process lives, over any number of broker restarts.

Asking the kernel for a free port gives one that an outgoing connection may take before, or between, the starts of
the server it is meant for. These lie below the range the kernel hands out, and a lock file keeps other benches away.
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
    """A port on 127.0.0.1 that nobody listens on and no other bench will be given."""
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
    """Give a port back."""
    _held.pop(port).close()
