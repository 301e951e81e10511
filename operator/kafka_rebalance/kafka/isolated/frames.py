"""The frames between the operator and the process of a client: kind, call, length and content.

The content is not parsed here.

The operator sends pickled content. It never unpickles content that it receives (`reply_format`), because the process
that sends it reads the answers of untrusted servers.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

LONGEST_ANSWER = 20 * 2**20
"""Bytes of one answer, in one frame or several: 100,000 partitions, or the log dirs of 400,000 replicas."""
LONGEST_PIECE = 2 * 2**20
"""Bytes of a frame with rows or errors. While it is read, 2 MiB of numbers take 90 MiB; 32 MiB would take 1.3 GB."""
_HEAD = struct.Struct(">BII")
HEAD_BYTES = _HEAD.size


class Kind(IntEnum):
    """The kind of a frame. The operator sends the first four kinds, the process of the client sends the others."""

    CALL = 1
    """A method of `KafkaAdmin`, its arguments and options."""
    CANCEL = 2
    """The caller no longer waits for the answer to this call."""
    MAY_SEND = 3
    """The answer to ASK_FENCE. Empty content means no."""
    CLOSE = 4
    """Close the client and end the process."""
    ROWS = 10
    """A part of an answer."""
    ERRORS = 16
    """A part of the errors of an answer, by topic or broker."""
    ANSWER = 11
    """The end of an answer."""
    ERROR = 12
    """The call failed with one of our errors."""
    ASK_FENCE = 13
    """An order is about to be sent: is this operator still the leader?"""
    LOG = 14
    """A line for the log."""
    BEAT = 15
    """Sent each second while a call is in progress."""


class Head(NamedTuple):
    """``length``: bytes of the content that follows."""

    kind: int
    call: int
    length: int


def framed(kind: Kind, call: int = 0, content: bytes = b"") -> bytes:
    """One frame."""
    return _HEAD.pack(kind, call, len(content)) + content


def check_length(count: int) -> None:
    """Raises ValueError if an answer may not have this number of bytes."""
    if count > LONGEST_ANSWER:
        raise ValueError(f"the answer is longer than {LONGEST_ANSWER >> 20} MiB")


def head_of(data: bytes) -> Head:
    """The head of a frame, from its first ``HEAD_BYTES``."""
    return Head(*_HEAD.unpack(data))
