"""The operator's side of a client process, and of the forking process.

Received data is not trusted. The size of frames is limited, and an invalid frame or answer ends the process.
"""

import asyncio
import contextlib
import contextvars
import logging
import pickle
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kafka.isolated.client_process import MEMORY_BYTES, OUT_OF_MEMORY, call_content
from kafka_rebalance.kafka.isolated.forking import FORK, MOST_PROCESSES, TOO_MANY, TOO_MUCH_TOGETHER
from kafka_rebalance.kafka.isolated.frames import HEAD_BYTES, Head, Kind, check_length, framed, head_of
from kafka_rebalance.kafka.isolated.kept_answers import AnswersOfClient, TooMuchKept
from kafka_rebalance.kafka.isolated.memory_bound import TOGETHER_BYTES
from kafka_rebalance.kafka.isolated.reply_format import ReadAnswer, read_error
from kafka_rebalance.kafka.settings import ConnectionSettings

log = logging.getLogger(__name__)

_PACKAGE = "kafka_rebalance."
_LONGEST_LINE = 4_000
_LINES_A_MINUTE = 100
"""Of the log of one process. A server may claim 1,500 brokers, each of which gives a line in each reading."""
_MOST_PRINTED = 2_000
"""Bytes of stderr of one process."""
_TICK_SECONDS = 5.0
_SILENT_TICKS = 6
"""A process without a beat for this time during a call hangs, for example in a library that holds Python's lock."""
_CLOSE_SECONDS = 2.0


class ForkingProcess:
    """Creates the client processes. It is started at the first use, and again if it has ended."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._lock = threading.Lock()

    def fork(self, namespace: str) -> tuple[socket.socket, socket.socket, socket.socket]:
        """The sockets of a new process: pipe, stderr and lifeline. Blocks for some milliseconds."""
        (pipe, theirs), (errors, stderr), (lifeline, of_forking) = (socket.socketpair() for _ in range(3))
        with theirs, stderr, of_forking, self._lock:
            if self._process is None or self._process.poll() is not None:
                self._start()
            assert self._control is not None  # noqa: S101 - for the type checker
            with contextlib.suppress(OSError):  # it has just ended; its closed sockets report that
                given = [theirs.fileno(), stderr.fileno(), of_forking.fileno()]
                socket.send_fds(self._control, [f"{FORK}{namespace}".encode()], given)
        return pipe, errors, lifeline

    def close(self) -> None:
        """End it and all its child processes."""
        with self._lock:
            if self._control is not None and self._process is not None:
                self._control.close()
                try:
                    self._process.wait(_CLOSE_SECONDS)
                except subprocess.TimeoutExpired:
                    self._process.kill()
                    self._process.wait()
                self._control = self._process = None

    def _start(self) -> None:
        if self._control is not None:
            self._control.close()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", f"{__package__}.forking", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # Ctrl-C at the terminal is only for the operator
            )


class ProcessEnded(Exception):
    """The process has ended, and all its calls with it. ``how``: a text for users."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class _Call:
    def __init__(self, method: str) -> None:
        self.method = method
        self.answer = ReadAnswer(method)
        self.done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()


class ProcessHandle:
    """A running process. ``may_send``: whether an order may be sent now. ``kept``: counts its answers."""

    def __init__(self, name: str, lifeline: socket.socket, may_send: Callable[[], bool], kept: AnswersOfClient) -> None:
        self._name = name
        self._lifeline = lifeline
        self._may_send = may_send
        self._kept = kept
        self._calls: dict[int, _Call] = {}
        self._number = 0
        self._lines, self._minute_ends = 0, float("-inf")
        self.ended = ""
        """How the process has ended."""

    @classmethod
    async def start(
        cls,
        forking: ForkingProcess,
        settings: ConnectionSettings,
        may_send: Callable[[], bool],
        namespace: str,
        kept: AnswersOfClient,
        cluster_id: str,
    ) -> "ProcessHandle":
        """Start a process for a client with these settings. ``cluster_id``: as of `kafka.admin.connect`."""
        pipe, errors, lifeline = await asyncio.to_thread(forking.fork, namespace)
        handle = cls(settings.bootstrap_servers, lifeline, may_send, kept)
        lifeline.setblocking(False)
        errors.setblocking(False)
        handle._reader, handle._writer = await asyncio.open_connection(sock=pipe)
        level = logging.getLogger(_PACKAGE.rstrip(".")).getEffectiveLevel()
        handle._write(Kind.CALL, 0, pickle.dumps((settings, level, cluster_id)))
        # In a separate context: the log fields of the first caller do not apply to later calls.
        handle._log_errors = asyncio.create_task(_logged(errors, settings), context=contextvars.Context())
        handle._reading = asyncio.create_task(handle._read(), context=contextvars.Context())
        return handle

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _reading: asyncio.Task[None]
    _log_errors: asyncio.Task[None]

    async def ask(self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """The answer. Raises the errors of the client, and `ProcessEnded` if the process ends before it answers."""
        if self.ended:
            raise ProcessEnded(self.ended)
        self._number += 1
        number, call = self._number, _Call(method)
        self._calls[number] = call
        try:
            self._write(Kind.CALL, number, call_content(method, arguments, options))
            return await call.done
        finally:
            del self._calls[number]
            if call.done.cancelled():
                self._write(Kind.CANCEL, number)

    async def close(self) -> None:
        """Let the client close its connections, then end the process."""
        self._write(Kind.CLOSE)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await asyncio.wait({self._reading})
        self.end()
        await asyncio.wait({self._reading})

    def end(self) -> None:
        """End the process, also one that hangs: the forking process kills it."""
        with contextlib.suppress(OSError):
            self._lifeline.shutdown(socket.SHUT_RDWR)

    async def _read(self) -> None:
        how = ""
        try:
            while True:
                head = head_of(await self._exactly(HEAD_BYTES))
                check_length(head.length)
                self._received(head, await self._exactly(head.length))
        except TimeoutError:
            how = f"it did nothing for {_TICK_SECONDS * _SILENT_TICKS:.0f} s"
        except (asyncio.IncompleteReadError, OSError):
            how = await self._exit()
        except TooMuchKept as error:
            how = error.how
        except ValueError as error:
            log.warning("the process of the Kafka client for %s: %s", self._name, str(error)[:500])
            how = "its answer is invalid or too long"
        finally:
            self.ended = how or "it was ended"
            self._kept.ended()
            self._lifeline.close()
            self._writer.close()
            for call in self._calls.values():
                if not call.done.done():
                    call.done.set_exception(ProcessEnded(self.ended))

    async def _exactly(self, count: int) -> bytes:
        silent = 0
        while True:
            try:
                async with asyncio.timeout(_TICK_SECONDS):
                    return await self._reader.readexactly(count)
            except TimeoutError:
                # Ticks are counted instead of comparing clocks, because the operator may have been suspended itself.
                silent = silent + 1 if self._calls else 0
                if silent >= _SILENT_TICKS:
                    raise

    def _received(self, head: Head, content: bytes) -> None:
        if head.kind == Kind.ASK_FENCE:
            self._write(Kind.MAY_SEND, head.call, b"yes" if self._may_send() else b"")
        elif head.kind == Kind.LOG:
            self._log(head.call, content)
        elif head.kind != Kind.BEAT and (call := self._calls.get(head.call)) is not None and not call.done.done():
            self._answered(call, Kind(head.kind), content)

    def _answered(self, call: _Call, kind: Kind, content: bytes) -> None:
        if kind in {Kind.ROWS, Kind.ERRORS}:
            self._kept.reading(call.method, call.answer.weight + len(content))
            add = call.answer.add_rows if kind == Kind.ROWS else call.answer.add_errors
            add(content)
        elif kind == Kind.ANSWER:
            self._kept.reading(call.method, call.answer.weight + len(content))
            call.done.set_result(call.answer.ended(content))
            self._kept.has_read(call.method, call.answer.weight)
        elif kind == Kind.ERROR:
            error: RebalanceError = read_error(content)
            call.done.set_exception(error)
        else:
            raise ValueError(f"a frame of kind {kind} is not for the operator")

    def _log(self, level: int, content: bytes) -> None:
        now = asyncio.get_running_loop().time()
        if now >= self._minute_ends:
            self._lines, self._minute_ends = 0, now + 60
        self._lines += 1
        if self._lines > _LINES_A_MINUTE:
            return
        if self._lines == _LINES_A_MINUTE:
            log.warning("%s: more lines of its client in this minute are left out", self._name)
            return
        name, _, line = content[:_LONGEST_LINE].decode(errors="replace").partition("\n")
        logger = logging.getLogger(name) if name.startswith(_PACKAGE) else log
        logger.log(min(level, logging.ERROR), "%s: %s", self._name, line)

    def _write(self, kind: Kind, call: int = 0, content: bytes = b"") -> None:
        if not self._writer.is_closing():
            self._writer.write(framed(kind, call, content))

    async def _exit(self) -> str:
        """How the process ended, as the forking process reports it. First waits until its printed lines are logged."""
        await asyncio.wait({self._log_errors}, timeout=_CLOSE_SECONDS)
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                said = await asyncio.get_running_loop().sock_recv(self._lifeline, 16)
                if said:
                    return exit_text(int(said))
        return "it was ended"


async def _logged(errors: socket.socket, settings: ConnectionSettings) -> None:
    """Log what the libraries print in the process, up to a limit, because a server can make them print without end.

    Only whole lines are logged: of a credential that is not read in one piece, neither part would be masked.
    """
    left, rest, loop = _MOST_PRINTED, b"", asyncio.get_running_loop()
    with errors, contextlib.suppress(OSError):
        while left > 0 and (printed := await loop.sock_recv(errors, left)):
            left -= len(printed)
            lines, newline, rest = (rest + printed).rpartition(b"\n")
            _log_lines(lines + newline, settings)
        if left > 0:
            _log_lines(rest, settings)


def _log_lines(printed: bytes, settings: ConnectionSettings) -> None:
    for line in settings.redact(printed.decode(errors="replace")).splitlines():
        log.warning("%s: %s", settings.bootstrap_servers, line)


def exit_text(code: int) -> str:
    """How a process with this exit code has ended, as text for users."""
    if code == OUT_OF_MEMORY:
        return f"it needed more than {MEMORY_BYTES >> 20} MiB of memory"
    if code == TOO_MUCH_TOGETHER:
        return (
            f"the clients of all inline connections together needed more than {TOGETHER_BYTES >> 20} MiB of memory, "
            "and those of this namespace used most of it"
        )
    if code == TOO_MANY:
        return f"the inline connections of this namespace already have {MOST_PROCESSES} client processes"
    if code < 0:
        with contextlib.suppress(ValueError):
            return f"it crashed ({signal.Signals(-code).name})"
    return f"it ended with exit code {code}"
