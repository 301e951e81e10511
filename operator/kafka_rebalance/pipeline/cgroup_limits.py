"""How much memory and how many cores this process may use: of its cgroup (v1 or v2), else of the machine.

In a container the machine's numbers are those of the node; a Spark that believes them is killed, or has more threads
than CPU. `limits` is pure; `own_limits` reads the files.
"""

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

_V1_UNLIMITED = 1 << 60
"""The kernel's number for no limit is LONG_MAX, rounded to a page."""

_LEAST_HEAP = 512
"""Megabytes with which Spark starts at all."""


@dataclass(frozen=True, slots=True)
class CgroupLimits:
    """``cores`` is at least 1: a limit of half a core has one thread."""

    memory_bytes: int
    cores: int


def groups(proc_cgroup: str) -> dict[str, PurePosixPath]:
    """The content of ``/proc/self/cgroup`` -> the path of the process by controller; "" is version 2."""
    found: dict[str, PurePosixPath] = {}
    for line in proc_cgroup.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            found[controller] = PurePosixPath(path)
    return found


def files(proc_cgroup: str) -> list[PurePosixPath]:
    """The files below ``/sys/fs/cgroup`` that may have a limit: of the group of the process and of all above it.

    In a container the path is often that on the node, and the files are where the root is: so that is among them.
    """
    wanted: list[PurePosixPath] = []
    for controller, path in groups(proc_cgroup).items():
        inside = path.relative_to("/")
        for place in (inside, *inside.parents):
            if controller == "":
                wanted += [place / "memory.max", place / "cpu.max"]
            elif controller == "memory":
                wanted.append("memory" / place / "memory.limit_in_bytes")
            elif controller == "cpu":
                wanted += ["cpu" / place / name for name in ("cpu.cfs_quota_us", "cpu.cfs_period_us")]
    return wanted


def limits(contents: Mapping[PurePosixPath, str], machine: CgroupLimits) -> CgroupLimits:
    """The minimum of the machine's numbers and of all limits in the files. Files without a number are ignored."""
    memory, cores = [machine.memory_bytes], [float(machine.cores)]
    for path, text in contents.items():
        words = text.split()
        if path.name in ("memory.max", "memory.limit_in_bytes") and words and words[0].isdigit():
            size = int(words[0])
            memory += [size] if 0 < size < _V1_UNLIMITED else []
        elif path.name == "cpu.max":
            cores += _share(words[0], words[1]) if len(words) == 2 else []
        elif path.name == "cpu.cfs_quota_us":
            cores += _share(text.strip(), contents.get(path.with_name("cpu.cfs_period_us"), "").strip())
    return CgroupLimits(min(memory), max(1, math.ceil(min(cores))))


def heap_megabytes(own: CgroupLimits, machine: CgroupLimits) -> int:
    """For Spark's Java, beside its other memory and this Python: half of a limit, or a quarter of a whole machine."""
    share = 2 if own.memory_bytes < machine.memory_bytes else 4
    return max(_LEAST_HEAP, own.memory_bytes // share >> 20)


def of_machine() -> CgroupLimits:
    """Without any cgroup."""
    return CgroupLimits(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"), len(os.sched_getaffinity(0)))


def own_limits() -> CgroupLimits:
    """Of this process."""
    machine = of_machine()
    contents: dict[PurePosixPath, str] = {}
    try:
        wanted = files(Path("/proc/self/cgroup").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return machine  # no Linux
    for path in wanted:
        try:
            contents[path] = Path("/sys/fs/cgroup", path).read_text(encoding="ascii")
        except (OSError, ValueError):
            continue
    return limits(contents, machine)


def _share(quota: str, period: str) -> list[float]:
    """Cores; -1 and max mean that there is no limit."""
    return [int(quota) / int(period)] if quota.isdigit() and period.isdigit() and int(quota) and int(period) else []
