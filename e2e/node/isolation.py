"""A network, mount and PID namespace for one node. When their first process ends, the kernel removes everything.

Everything of the node runs inside: containers, shims, mounts and bridges cannot outlive this process, even if it is
killed with -9. The node's directories (/run, /var/lib, /var/log) are in memory, and files mounted over the kernel's
already have the machine-wide settings that a kubelet wants to set.
"""

import contextlib
import ipaddress
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from e2e.bench.process import Child
from e2e.bench.waiting import wait_until

HOST_ADDRESS = "10.250.0.254"
"""Address at which Pods reach this machine; its servers listen on it."""
NODE_ADDRESS = "10.250.0.1"
POD_NETWORK = "10.244.0.0/24"
SERVICE_NETWORK = "10.96.0.0/16"
CGROUP = "kafka-rebalance-node"

_LINK = "kafka-node0"
_NETWORK = "10.250.0.0/24"
_PREFIX = _NETWORK.partition("/")[2]
_CGROUPS = Path("/sys/fs/cgroup")
_SYSCTLS = {
    # Values that a kubelet requires. It reads them here; the machine keeps its own.
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
}
_FIRST_PROCESS = """
set -e
mount --make-rshared /
for place in /run /var/lib /var/log; do mount -t tmpfs node "$place"; done
mkdir -p /run/netns /run/lock
cd "$1"
for file in $(find . -type f); do mount --bind "$file" "/proc/sys/$file"; done
ip link set lo up
echo 1 > /proc/sys/net/ipv4/ip_forward
touch "$2"
# With this the kernel reaps what loses its parent.
trap '' CHLD
exec sleep infinity
"""


class Isolation:
    """The namespaces of one node; only one per machine, because its addresses are fixed."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._first: Child | None = None
        self._inside = 0

    def start(self) -> None:
        """Create them, and a link between them and this machine. Raises RuntimeError if the addresses are in use."""
        _refuse_taken_networks()
        _remove_cgroups()
        sysctls, ready = self._directory / "sysctls", self._directory / "isolated"
        for name, value in _SYSCTLS.items():
            path = sysctls / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{value}\n")
        command = ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
        command += ["--propagation", "private", "sh", "-c", _FIRST_PROCESS, "sh", str(sysctls), str(ready)]
        first = self._first = Child(command, log=self._directory / "isolation.log")

        def is_ready() -> bool:
            first.check_alive()
            return ready.exists()

        wait_until("the node's namespaces are made", is_ready)
        children = Path(f"/proc/{first.pid}/task/{first.pid}/children").read_text().split()
        self._inside = int(children[0])
        self._link()
        for hierarchy in _hierarchies():
            (hierarchy / CGROUP).mkdir(exist_ok=True)

    def command(self, *argv: str) -> list[str]:
        """The command line that runs a command inside."""
        target = ["nsenter", f"--target={self._inside}", "--net", "--mount", f"--pid=/proc/{self._inside}/ns/pid"]
        return [*target, "--wd=/", "--", *argv]

    def run(self, *argv: str, timeout: float = 300) -> str:
        """Run a command inside; returns its standard output."""
        return _run(*self.command(*argv), timeout=timeout)

    def close(self) -> None:
        """Kill everything inside, and remove what remains outside: its cgroups."""
        if self._first is None:
            return  # the existing entries belong to another node
        self._first.kill9()
        if self._inside:
            wait_until("the node's processes are gone", lambda: not Path(f"/proc/{self._inside}").exists())
        wait_until("the node's cgroups are empty", _remove_cgroups)

    def _link(self) -> None:
        """Connect this machine and the node, with routes to Pods and Services."""
        ip = ("ip", "link", "add", _LINK, "type", "veth", "peer", "name", "eth0", "netns", str(self._inside))
        _run(*ip)
        self.run("ip", "address", "add", f"{NODE_ADDRESS}/{_PREFIX}", "dev", "eth0")
        self.run("ip", "link", "set", "eth0", "up")
        self.run("ip", "route", "add", "default", "via", HOST_ADDRESS)
        _run("ip", "address", "add", f"{HOST_ADDRESS}/{_PREFIX}", "dev", _LINK)
        _run("ip", "link", "set", _LINK, "up")
        for network in (POD_NETWORK, SERVICE_NETWORK):
            _run("ip", "route", "add", network, "via", NODE_ADDRESS)


def memory_counts(pid: int) -> Iterator[Path]:
    """The files, of cgroups of version 2 and 1, that count the kills in the memory cgroup of a process (oom_kill)."""
    for line in Path(f"/proc/{pid}/cgroup").read_text().splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            yield _CGROUPS / group.lstrip("/") / "memory.events"
        elif controllers == "memory":
            yield _CGROUPS / "memory" / group.lstrip("/") / "memory.oom_control"


def _refuse_taken_networks() -> None:
    ours = [ipaddress.ip_network(text) for text in (_NETWORK, POD_NETWORK, SERVICE_NETWORK)]
    for line in _run("ip", "-4", "route", "show", "table", "all").splitlines():
        words = line.split()
        target = words[1] if words[0] in {"broadcast", "local", "unreachable"} else words[0]
        with contextlib.suppress(ValueError):  # `default`: our routes are more specific
            if any(ipaddress.ip_network(target, strict=False).overlaps(one) for one in ours):
                message = f"this machine has a route to {target} ({line.strip()}), which the test's node would take:"
                raise RuntimeError(f"{message} another node is up, or its networks are in use here")


def _hierarchies() -> Iterator[Path]:
    """The roots of all cgroup hierarchies: one (version 2), or one per controller."""
    if (_CGROUPS / "cgroup.controllers").exists():
        yield _CGROUPS
        return
    for path in sorted(_CGROUPS.iterdir()):
        if path.is_dir() and not path.is_symlink() and (path / "cgroup.procs").exists():
            yield path


def _remove_cgroups() -> bool:
    """Remove the node's cgroups; False while a process in one of them is still running."""
    gone = True
    for hierarchy in _hierarchies():
        for directory, _, _ in os.walk(hierarchy / CGROUP, topdown=False):
            try:
                Path(directory).rmdir()
            except OSError:
                gone = False
    return gone


def _run(*argv: str, timeout: float = 60) -> str:
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=timeout)
    if done.returncode:
        raise RuntimeError(f"{' '.join(argv)} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout
