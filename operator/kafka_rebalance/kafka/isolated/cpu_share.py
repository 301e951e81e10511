"""The CPU time that the client processes of one namespace may use before they get a lower priority.

A server can keep its client busy without end, with answers that take long to read. The client processes share the CPUs
of the operator's container. A lower priority (nice) costs a process nothing while the CPUs have time to spare.
"""

import contextlib
import os
from collections.abc import Collection, Mapping

LOW_PRIORITY = 15
"""The nice value of processes of a namespace without CPU time left: forty of them weigh one and a half operators."""
SAVED_SECONDS = 10.0
"""The most CPU time that a namespace can save up: what twenty clients need to read their clusters at the start."""
PER_SECOND = 0.5
"""CPU seconds that a namespace gets each second."""


class CpuShares:
    """The CPU time that each namespace has left."""

    def __init__(self) -> None:
        self._left: dict[str, float] = {}

    def pass_time(self, seconds: float) -> None:
        """Give each namespace its CPU time for the seconds that have passed."""
        grown = {namespace: left + PER_SECOND * seconds for namespace, left in self._left.items()}
        self._left = {namespace: left for namespace, left in grown.items() if left < SAVED_SECONDS}

    def spend(self, namespace: str, seconds: float) -> None:
        """Processes of the namespace have used this CPU time."""
        self._left[namespace] = self._left.get(namespace, SAVED_SECONDS) - seconds

    def exhausted(self) -> Collection[str]:
        """The namespaces that have no CPU time left."""
        return {namespace for namespace, left in self._left.items() if left <= 0}


class CpuUse:
    """Measures the CPU time of processes, each in a group of its own, and lowers the priority of busy namespaces.

    A process cannot get its former priority back without privileges, so it keeps the low one until it ends.
    """

    def __init__(self) -> None:
        self._shares = CpuShares()
        self._used: dict[int, float] = {}
        self._lowered: set[int] = set()

    def look(self, namespaces: Mapping[int, str], passed: float) -> None:
        """Look at all processes. ``namespaces``: by process id. ``passed``: seconds since the last look."""
        self._shares.pass_time(passed)
        for pid, namespace in namespaces.items():
            self._note(pid, namespace, cpu_seconds(pid))
        exhausted = self._shares.exhausted()
        for pid, namespace in namespaces.items():
            if namespace in exhausted and pid not in self._lowered:
                self._lowered.add(pid)
                with contextlib.suppress(OSError):  # it has ended
                    present = os.getpriority(os.PRIO_PGRP, pid)
                    os.setpriority(os.PRIO_PGRP, pid, max(present, LOW_PRIORITY))  # of all its threads

    def ended(self, pid: int, namespace: str, seconds: float) -> None:
        """A process has ended, which used this CPU time in all."""
        self._note(pid, namespace, seconds)
        del self._used[pid]
        self._lowered.discard(pid)

    def _note(self, pid: int, namespace: str, seconds: float) -> None:
        before = self._used.get(pid, 0.0)
        self._shares.spend(namespace, max(seconds - before, 0.0))
        self._used[pid] = max(seconds, before)


def cpu_seconds(pid: int) -> float:
    """CPU time that the process has used, without its children; 0 if it has ended."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            fields = stat.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
