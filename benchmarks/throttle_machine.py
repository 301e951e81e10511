"""The machine of the measurement, and how much CPU other processes used meanwhile."""

import json
import os
import platform
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from e2e.world import World

_TICK = os.sysconf("SC_CLK_TCK")
_IDLE_SECONDS = 5


def idle_cores() -> float:
    """Idle cores, over five seconds; call it before anything is started."""
    before = _busy_seconds()
    time.sleep(_IDLE_SECONDS)
    return max(0.0, (os.cpu_count() or 1) - (_busy_seconds() - before) / _IDLE_SECONDS)


def machine_facts(world: World, idle: float) -> dict[str, Any]:
    """Hardware and versions; `idle` from `idle_cores`."""
    cpu = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(int(line.split()[1]) * 1024 for line in _lines("/proc/meminfo") if line.startswith("MemTotal"))
    java = subprocess.run(["java", "-version"], check=True, capture_output=True, text=True).stderr.splitlines()[0]
    return {
        "cores": os.cpu_count(),
        "cpu": cpu[0] if cpu else platform.machine(),
        "memoryBytes": memory,
        "idleCoresBefore": round(idle, 2),
        "loadBefore": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "kafka": world.kafka.jars.version,
        "brokers": len(world.kafka.brokers),
        "kubernetes": json.loads(world.kube.kubectl("version", "-o", "json"))["serverVersion"]["gitVersion"],
        "java": java,
        "python": platform.python_version(),
    }


class Watched:
    """CPU used by processes other than this one and its children, in cores, and the load at the end."""

    def __init__(self) -> None:
        self.others = 0.0
        self.load = 0.0

    def __enter__(self) -> Self:
        self._began, self._busy, self._ours = time.monotonic(), _busy_seconds(), _our_seconds()
        return self

    def __exit__(self, *_: object) -> None:
        ours, busy = _our_seconds() - self._ours, _busy_seconds() - self._busy
        self.others = max(0.0, (busy - ours) / (time.monotonic() - self._began))
        self.load = os.getloadavg()[0]


def _busy_seconds() -> float:
    """Busy CPU seconds of all cores since boot: everything except idle and iowait."""
    values = [int(word) for word in _lines("/proc/stat")[0].split()[1:]]
    user, nice, system, _idle, _iowait, irq, softirq, steal = values[:8]
    return (user + nice + system + irq + softirq + steal) / _TICK


def _our_seconds() -> float:
    """CPU seconds of this process and its descendants; those of ended children count for their parent."""
    parents, spent = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                words = (entry / "stat").read_text().rpartition(")")[2].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            parents[int(entry.name)] = int(words[1])
            spent[int(entry.name)] = sum(int(word) for word in words[11:15]) / _TICK
    ours = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in ours} - ours:
        ours |= more
    return sum(spent[pid] for pid in ours)


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()
