"""Child processes that cannot outlive the process that started them, even if that one is killed with -9.

The kernel sends SIGKILL to every child when the *thread* that forked it ends, so all children are forked by one thread
that lives as long as this process. `setpriv` sets the signal between fork and exec, without Python code in the child.
Nothing here depends on what the children are.
"""

import os
import queue
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

# The parent may die between the fork and setpriv; then the signal is never sent, and $PPID is another process.
_GUARD = '[ "$PPID" = "$1" ] || exit 1; shift; exec "$@"'


class _Forker:
    """The thread that forks all children and lives as long as this process."""

    def __init__(self) -> None:
        self._requests: queue.SimpleQueue[tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]]
        self._requests = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self, make: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="bench-forker", daemon=True)
                self._thread.start()
        future: Future[subprocess.Popen[bytes]] = Future()
        self._requests.put((make, future))
        return future.result()

    def _run(self) -> None:
        while True:
            make, future = self._requests.get()
            try:
                future.set_result(make())
            except OSError as error:
                future.set_exception(error)


_forker = _Forker()


class Child:
    """A running child process with one log file, to which every start appends."""

    def __init__(
        self,
        argv: Sequence[str],
        *,
        log: Path,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.name = log.stem
        self.log = log
        command = ["setpriv", "--pdeathsig", "KILL", "sh", "-c", _GUARD, "sh", str(os.getpid()), *argv]

        def make() -> subprocess.Popen[bytes]:
            with log.open("ab") as out:
                # Its own session: Ctrl-C goes to the parent only, which stops its children in order.
                return subprocess.Popen(
                    command,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=dict(env) if env is not None else None,
                    cwd=cwd,
                    start_new_session=True,
                )

        self._process = _forker.start(make)

    @property
    def pid(self) -> int:
        """The pid of the program itself: setpriv and the shell exec it."""
        return self._process.pid

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def check_alive(self) -> None:
        """Raise with the end of the log if the child has exited."""
        code = self._process.poll()
        if code is not None:
            raise RuntimeError(f"{self.name} ended with exit code {code}; its log {self.log} ends with:\n{self.tail()}")

    def tail(self, lines: int = 25) -> str:
        """The last lines of the log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def kill9(self) -> None:
        """SIGKILL, and wait until the process is gone."""
        if self.running:
            self._process.send_signal(signal.SIGKILL)
        self._process.wait()

    def pause(self) -> None:
        """SIGSTOP, and wait until all its threads are stopped."""
        self._process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self.pid, os.WSTOPPED)

    def resume(self) -> None:
        """SIGCONT."""
        self._process.send_signal(signal.SIGCONT)

    def stop(self, timeout: float = 240) -> int:
        """SIGTERM, and wait for the exit code; raises `subprocess.TimeoutExpired` if it does not exit."""
        if self.running:
            self._process.send_signal(signal.SIGTERM)
        return self._process.wait(timeout)
