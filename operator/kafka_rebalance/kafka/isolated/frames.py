"""The frames between the operator and the process of a client: kind, call, length and content. Nothing is read here.

What the operator sends is pickled. What it receives is never unpickled (`reply_format`): the process that sends it
reads the answers of servers that nobody vouches for.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

LONGEST_ANSWER = 32 * 2**20
"""Bytes of one answer, in one frame or several: 250,000 partitions, or the log dirs of 600,000 replicas."""
_HEAD = struct.Struct(">BII")
HEAD_BYTES = _HEAD.size


class Kind(IntEnum):
    """What a frame is. The first four are for the process of the client, the others are from it."""

    CALL = 1
    """A method of the port, its arguments and options."""
    CANCEL = 2
    """Nobody waits for the answer to this call any more."""
    MAY_SEND = 3
    """The answer to ASK_FENCE: empty for no."""
    CLOSE = 4
    """Close the client and end."""
    ROWS = 10
    """A part of an answer."""
    ANSWER = 11
    """The end of an answer."""
    ERROR = 12
    """The call failed with one of our errors."""
    ASK_FENCE = 13
    """An order is about to be sent: does this operator still lead?"""
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
    """Raises ValueError for more bytes than an answer may have."""
    if count > LONGEST_ANSWER:
        raise ValueError(f"the answer is longer than {LONGEST_ANSWER >> 20} MiB")


def head_of(data: bytes) -> Head:
    """The head of a frame, from its first ``HEAD_BYTES``."""
    return Head(*_HEAD.unpack(data))
