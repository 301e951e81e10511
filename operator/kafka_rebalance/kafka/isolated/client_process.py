"""The process of one client: it answers the calls that the operator sends, until the operator closes the socket.

This process makes no decisions. Wherever a client in the operator checks the fence, it asks the operator: at the start
of each order, and right before each request that changes something.
"""

import asyncio
import contextlib
import ctypes
import dataclasses
import io
import itertools
import logging
import os
import pickle
import resource
import socket
import threading
from collections.abc import Callable
from typing import Any

from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated.frames import HEAD_BYTES, Head, Kind, framed, head_of
from kafka_rebalance.kafka.isolated.memory_bound import SOCKET_BYTES
from kafka_rebalance.kafka.isolated.reply_format import written, written_error
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.parent_process import end_with_parent
from kafka_rebalance.reasons import Reason

log = logging.getLogger(__name__)

MEMORY_BYTES = 512 * 2**20
"""Memory that the process may map in addition to its initial memory. Includes the stack of one thread per broker."""
STACK_BYTES = 512 * 2**10
"""Stack size of a thread. The usual 8 MiB would count as used memory."""
OUT_OF_MEMORY = 70
"""The exit code of a process that exceeds its memory."""
BEAT_SECONDS = 1.0
_FENCE_SECONDS = 5.0
"""How long an order waits for the operator. An operator that does not answer is suspended or overloaded."""
_LONGEST_LINE = 4_000
_M_ARENA_MAX = -8


def serve(pipe: socket.socket) -> None:
    """Answer calls. Must be called in a dedicated process that has one thread."""
    _limit()
    try:
        asyncio.run(_ClientProcess(pipe).run())
    except MemoryError:
        os._exit(OUT_OF_MEMORY)


def small_stacks() -> None:
    """Give threads of libraries small stacks, and let them share freed memory."""
    threading.stack_size(STACK_BYTES)
    libc = ctypes.CDLL(None)
    # Not every libc has these functions. Without them, the memory suffices for fewer brokers.
    with contextlib.suppress(AttributeError):
        libc.mallopt(_M_ARENA_MAX, 2)
    with contextlib.suppress(AttributeError):
        attributes = ctypes.create_string_buffer(128)
        libc.pthread_attr_init(attributes)
        libc.pthread_attr_setstacksize(attributes, ctypes.c_size_t(STACK_BYTES))
        libc.pthread_setattr_default_np(attributes)
        libc.pthread_attr_destroy(attributes)


def _limit() -> None:
    """Limit the memory, disable core files (they would contain credentials), and end with the parent process."""
    end_with_parent()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError), open("/proc/self/statm", encoding="ascii") as statm:
        most = int(statm.read().split()[0]) * resource.getpagesize() + MEMORY_BYTES
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    # If the node or the container runs out of memory, the kernel kills this process first.
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as adjusted:
        adjusted.write("1000")


class _ClientProcess:
    """A separate thread reads the frames, because several threads ask for the fence and wait for the answer."""

    def __init__(self, pipe: socket.socket) -> None:
        self._pipe = pipe
        self._writing = threading.Lock()
        self._numbers = itertools.count(1)
        self._asked: dict[int, Callable[[bool], None]] = {}
        self._calls: dict[int, asyncio.Task[None]] = {}
        self._closed = asyncio.Event()

    async def run(self) -> None:
        settings, level, cluster_id = pickle.loads(self._read()[1])  # noqa: S301 - the operator wrote it
        self._log_through_the_pipe(settings, level)
        self._loop = asyncio.get_running_loop()
        bounded = dataclasses.replace(settings, receive_buffer_bytes=SOCKET_BYTES // 2)  # the kernel doubles it
        self._admin = connect(bounded, Fence(self._may_send), cluster_id)
        threading.Thread(target=self._read_all, name="frames", daemon=True).start()
        beating = asyncio.create_task(self._beat())
        await self._closed.wait()
        beating.cancel()
        await self._admin.close()
        os._exit(0)  # threads of the client libraries may wait for servers that hang

    def _read_all(self) -> None:
        while True:
            try:
                head, content = self._read()
            except (OSError, EOFError):
                os._exit(0)  # the operator has ended
            if head.kind == Kind.MAY_SEND:
                answered = self._asked.pop(head.call, None)
                if answered is not None:
                    answered(bool(content))
            else:
                self._loop.call_soon_threadsafe(self._received, head, content)

    def _received(self, head: Head, content: bytes) -> None:
        if head.kind == Kind.CLOSE:
            self._closed.set()
        elif head.kind == Kind.CANCEL:
            if (call := self._calls.get(head.call)) is not None:
                call.cancel()
        else:
            task = asyncio.create_task(self._answer(head.call, content))
            self._calls[head.call] = task
            task.add_done_callback(lambda _: self._calls.pop(head.call, None))

    async def _answer(self, call: int, content: bytes) -> None:
        method, arguments, options = pickle.loads(content)  # noqa: S301 - the operator wrote it
        try:
            found = await getattr(self._admin, method)(*arguments, **options)
            for kind, piece in written(method, found):
                self._send(kind, call, piece)
        except MemoryError:
            os._exit(OUT_OF_MEMORY)
        except RebalanceError as error:
            self._send(Kind.ERROR, call, written_error(error))
        except Exception as error:
            log.exception("%s: unexpected error", method)
            message = f"unexpected error ({type(error).__name__}) in {method}, see the operator's log"
            self._send(Kind.ERROR, call, written_error(Transient(Reason.INTERNAL_ERROR, message)))

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            if self._calls:
                self._send(Kind.BEAT)

    def _may_send(self) -> bool:
        """Whether the operator is the leader.

        Blocks the calling thread until the operator answers; False without an answer.
        """
        number, answered, said = next(self._numbers), threading.Event(), [False]

        def hear(answer: bool) -> None:
            said[0] = answer
            answered.set()

        self._asked[number] = hear
        self._send(Kind.ASK_FENCE, number)
        if not answered.wait(_FENCE_SECONDS):
            self._asked.pop(number, None)
            return False
        return said[0]

    def _read(self) -> tuple[Head, bytes]:
        head = head_of(self._exactly(HEAD_BYTES))
        return head, self._exactly(head.length)

    def _exactly(self, count: int) -> bytes:
        data = io.BytesIO()
        while (left := count - data.tell()) > 0:
            part = self._pipe.recv(min(left, 1 << 20))
            if not part:
                raise EOFError
            data.write(part)
        return data.getvalue()

    def _send(self, kind: Kind, call: int = 0, content: bytes = b"") -> None:
        try:
            with self._writing:
                self._pipe.sendall(framed(kind, call, content))
        except OSError:
            os._exit(0)  # the operator has ended

    def _log_through_the_pipe(self, settings: ConnectionSettings, level: int) -> None:
        root = logging.getLogger()
        root.handlers = [_PipeHandler(self._send, settings)]
        root.setLevel(level)


class _PipeHandler(logging.Handler):
    """Sends log lines to the operator, which writes them in its format."""

    def __init__(self, send: Callable[..., None], settings: ConnectionSettings) -> None:
        super().__init__()
        self._send = send
        self._redact = settings.redact
        self.setFormatter(logging.Formatter("%(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self._redact(self.format(record))[:_LONGEST_LINE]
            self._send(Kind.LOG, record.levelno, f"{record.name}\n{line}".encode(errors="replace"))
        except Exception:  # noqa: BLE001 - as logging does
            self.handleError(record)


class _Sent(pickle.Pickler):
    """Views of mappings, which callers pass as collections, are sent as lists."""

    def reducer_override(self, value: object) -> Any:
        return (list, (list(value),)) if isinstance(value, _VIEWS) else NotImplemented


_NOTHING: dict[object, object] = {}
_VIEWS = (type(_NOTHING.keys()), type(_NOTHING.values()), type(_NOTHING.items()))


def call_content(method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> bytes:
    """The content of a frame of kind CALL."""
    content = io.BytesIO()
    _Sent(content, pickle.HIGHEST_PROTOCOL).dump((method, arguments, options))
    return content.getvalue()
