"""The bound on the memory of all client processes together, and which of them must end to keep it.

Each process has a limit of its own, but their sum counts for the container of the operator. The kernel may end all
processes of a container that runs out of memory (memory.oom.group of cgroup v2, the default since Kubernetes 1.28).
"""

import collections
import os
import resource
from collections.abc import Mapping

TOGETHER_BYTES = 512 * 2**20
"""The most memory that all client processes may use together."""
SOCKET_BYTES = 128 * 2**10
"""What the kernel holds for a socket at most, of data that its process has not read. It counts for the container."""


def processes_to_end(used: Mapping[int, int], namespaces: Mapping[int, str]) -> list[int]:
    """The ids of the processes to end so that the others use at most `TOGETHER_BYTES`.

    Selects the largest process of the namespace that uses most, again and again. ``used``: bytes by process id.
    """
    by_namespace = collections.Counter[str]()
    for pid, count in used.items():
        by_namespace[namespaces[pid]] += count
    left, ended = dict(used), []
    while sum(left.values()) > TOGETHER_BYTES:
        ((largest_namespace, _),) = by_namespace.most_common(1)
        largest = max((pid for pid in left if namespaces[pid] == largest_namespace), key=left.__getitem__)
        by_namespace[largest_namespace] -= left.pop(largest)
        ended.append(largest)
    return ended


def anonymous_bytes(pid: int) -> int:
    """Resident memory of the process without the pages of files; 0 if the process has ended."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as statm:
            _, resident, of_files, *_ = map(int, statm.read().split())
    except OSError:
        return 0
    return (resident - of_files) * resource.getpagesize()


def socket_bytes(pid: int) -> int:
    """What the kernel may hold for the open files of the process; 0 if the process has ended."""
    try:
        return len(os.listdir(f"/proc/{pid}/fd")) * SOCKET_BYTES
    except OSError:
        return 0
