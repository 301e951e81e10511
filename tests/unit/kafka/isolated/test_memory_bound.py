"""Which processes end when all together use too much memory."""

import os
import socket
import subprocess
import sys

from kafka_rebalance.kafka.isolated.memory_bound import SOCKET_BYTES, anonymous_bytes, processes_to_end, socket_bytes

_MIB = 2**20
_GROWING = """
import os, sys
print(flush=True)
sys.stdin.readline()
kept = bytearray(os.urandom(64)) * 2**20
print(flush=True)
sys.stdin.readline()
"""
NAMESPACES = {1: "a", 2: "a", 3: "a", 4: "b"}


def ended(*used):
    return processes_to_end({pid: mib * _MIB for pid, mib in enumerate(used, 1)}, NAMESPACES)


class TestProcessesToEnd:
    def test_none_within_the_bound(self):
        assert ended(200, 100, 100, 112) == []

    def test_the_largest_one_of_the_namespace_that_uses_most(self):
        """A user with many servers pays for them, not a neighbour with one large cluster."""
        assert ended(100, 120, 110, 210) == [2]

    def test_as_many_as_it_takes(self):
        assert ended(300, 300, 300, 200) == [1, 2]

    def test_of_another_namespace_as_soon_as_that_uses_most(self):
        """When its first process has ended, ``a`` uses 200 MiB and ``b`` 400."""
        assert ended(400, 100, 100, 400) == [1, 4]


class TestAnonymousBytes:
    def test_of_a_process_grow_with_what_it_allocates(self):
        """Of a new process: one that has run other tests may free memory meanwhile."""
        with subprocess.Popen(
            [sys.executable, "-c", _GROWING], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            found = []
            while process.stdout.readline():
                found.append(anonymous_bytes(process.pid))
                process.stdin.write(b"\n")
                process.stdin.flush()
        before, after = found
        assert 0.9 < (after - before) / (64 * _MIB) < 1.5

    def test_of_one_that_has_ended_are_none(self):
        assert anonymous_bytes(2**22 + 1) == 0


class TestSocketBytes:
    def test_of_each_open_socket(self):
        before = socket_bytes(os.getpid())
        with socket.socket(), socket.socket():
            assert socket_bytes(os.getpid()) == before + 2 * SOCKET_BYTES

    def test_of_one_that_has_ended_are_none(self):
        assert socket_bytes(2**22 + 1) == 0
