"""The forking process: it forks the client processes. It has imported the client libraries and does nothing else.

The operator cannot fork itself, because it has several threads. Starting a new interpreter takes half a second and 30
MB. For each client the operator sends three sockets: the pipe of the client, its stderr, and a lifeline. The lifeline
returns the exit code of the client process; closing it kills the process. When the operator ends for any reason, this
process and all its children end too.
"""

import collections
import contextlib
import gc
import os
import selectors
import signal
import socket
import sys
import time

from kafka_rebalance.kafka.isolated.client_process import serve, small_stacks
from kafka_rebalance.kafka.isolated.cpu_share import CpuUse
from kafka_rebalance.kafka.isolated.memory_bound import TOGETHER_BYTES, anonymous_bytes, processes_to_end, socket_bytes

FORK = "+"
"""Begins a request to fork, before the namespace. Without it, the request of an empty namespace would be no message."""
TOO_MUCH_TOGETHER = 71
"""Sent instead of the exit code of a process that was ended to keep the bound on all of them."""
TOO_MANY = 72
"""Sent instead of the exit code of a process that was not forked, because its namespace has `MOST_PROCESSES`."""
MOST_PROCESSES = 40
"""Of one namespace at the same time: two for each of the clusters that it may have on record."""
_LOOK_SECONDS, _LOOK_SECONDS_WHEN_HIGH = 0.05, 0.01
"""Intervals of reading the memory of all processes. In 0.05 s, servers can fill tens of MiB, so the shorter interval
applies above half of the bound."""
_CPU_SECONDS = 1.0
"""The interval of reading the CPU time of all processes."""
_MOST_BYTES = 1_000
"""Read at once: signals that wake this process, or a request to fork."""
_SOCKETS = 3


def run(control: socket.socket) -> None:
    """Run until the operator closes the socket."""
    small_stacks()
    gc.collect()
    gc.freeze()  # otherwise the collector writes to the shared pages, which copies them
    _Forking(control).run()


class _Forking:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._woken, self._wake = socket.socketpair()
        self._lifelines: dict[int, socket.socket] = {}
        self._namespaces: dict[int, str] = {}
        self._too_much: set[int] = set()
        self._look_seconds = _LOOK_SECONDS
        self._cpu_use = CpuUse()
        self._cpu_looked = time.monotonic()
        self._selector = selectors.DefaultSelector()

    def run(self) -> None:
        self._wake.setblocking(False)
        signal.set_wakeup_fd(self._wake.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for waited_for in (self._control, self._woken):
            self._selector.register(waited_for, selectors.EVENT_READ)
        while True:
            for key, _ in self._selector.select(self._look_seconds if self._lifelines else None):
                if key.fileobj is self._control:
                    if not self._fork():
                        self._end_all()
                        return
                elif key.fileobj is self._woken:
                    self._woken.recv(_MOST_BYTES)
                    self._reap()
                elif key.data in self._lifelines:
                    self._selector.unregister(key.fileobj)
                    os.kill(key.data, signal.SIGKILL)
            self._bound_memory()
            self._share_cpu()

    def _bound_memory(self) -> None:
        shared = anonymous_bytes(os.getpid())
        running = self._lifelines.keys() - self._too_much
        used = {pid: max(anonymous_bytes(pid) - shared, 0) + socket_bytes(pid) for pid in running}
        for pid in processes_to_end(used, self._namespaces):
            self._too_much.add(pid)
            os.kill(pid, signal.SIGKILL)
        high = sum(used.values()) > TOGETHER_BYTES // 2
        self._look_seconds = _LOOK_SECONDS_WHEN_HIGH if high else _LOOK_SECONDS

    def _share_cpu(self) -> None:
        passed = time.monotonic() - self._cpu_looked
        if passed >= _CPU_SECONDS:
            self._cpu_use.look(self._namespaces, passed)
            self._cpu_looked += passed

    def _fork(self) -> bool:
        """Fork a process for the sockets that were received. False if the operator has closed the socket."""
        data, received, _, _ = socket.recv_fds(self._control, _MOST_BYTES, _SOCKETS)
        if not data:
            return False
        sockets = [socket.socket(fileno=number) for number in received]
        if len(sockets) < _SOCKETS:  # this process has too many open files: closed sockets report the end
            for one in sockets:
                one.close()
            return True
        pipe, errors, lifeline = sockets
        namespace = data.decode().removeprefix(FORK)
        if collections.Counter(self._namespaces.values())[namespace] >= MOST_PROCESSES:
            with contextlib.suppress(OSError):  # the operator has closed it
                lifeline.sendall(str(TOO_MANY).encode())
            for one in sockets:
                one.close()
            return True
        try:
            pid = os.fork()
        except OSError:  # no memory, or too many processes: closed sockets report the end
            for one in sockets:
                one.close()
            return True
        if not pid:
            self._become_a_client(pipe, errors, lifeline)
        pipe.close()
        errors.close()
        with contextlib.suppress(OSError):  # it has ended
            os.setpgid(pid, pid)
        self._lifelines[pid], self._namespaces[pid] = lifeline, namespace
        self._selector.register(lifeline, selectors.EVENT_READ, pid)
        return True

    def _become_a_client(self, pipe: socket.socket, errors: socket.socket, lifeline: socket.socket) -> None:
        try:
            os.dup2(errors.fileno(), sys.stderr.fileno())
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self._selector.close()
            for other in (errors, lifeline, *self._lifelines.values(), self._control, self._woken, self._wake):
                other.close()
            serve(pipe)
        finally:
            os._exit(1)

    def _reap(self) -> None:
        """Reap all children that have ended: one signal may stand for several."""
        while self._lifelines:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if not pid:
                return
            lifeline = self._lifelines.pop(pid)
            self._cpu_use.ended(pid, self._namespaces.pop(pid), usage.ru_utime + usage.ru_stime)
            code = TOO_MUCH_TOGETHER if pid in self._too_much else os.waitstatus_to_exitcode(status)
            self._too_much.discard(pid)
            with contextlib.suppress(KeyError):
                self._selector.unregister(lifeline)
            with contextlib.suppress(OSError):
                lifeline.sendall(str(code).encode())
            lifeline.close()

    def _end_all(self) -> None:
        for pid in self._lifelines:
            os.kill(pid, signal.SIGKILL)
        for pid in self._lifelines:
            os.waitpid(pid, 0)


if __name__ == "__main__":
    run(socket.socket(fileno=int(sys.argv[1])))
