"""The process of a client ends with the operator, is replaced when it hangs or crashes, and reveals no credentials."""

import asyncio
import logging
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests.fakes.hostile_server import HostileServer
from tests.unit.kafka.isolated.isolated_clients import LEADING, children_of, states, until

from kafka_rebalance.api.connection import SaslMechanism
from kafka_rebalance.errors import Transient
from kafka_rebalance.kafka.isolated import client_process, process_handle
from kafka_rebalance.kafka.isolated.frames import Head, Kind, framed
from kafka_rebalance.kafka.isolated.memory_bound import SOCKET_BYTES
from kafka_rebalance.kafka.isolated.reply_format import written
from kafka_rebalance.kafka.ports import Answers, LogDir
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.model.topology import BrokerId, TopicPartition


def maps_of(pid):
    try:
        return Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return ""


def given_to(pid):
    """Arguments and environment of the process."""
    return b"".join(Path(f"/proc/{pid}/{what}").read_bytes() for what in ("cmdline", "environ"))


class Kept:
    """Records the largest count of an answer that arrived, and that of one that was read."""

    def __init__(self):
        self.arrived = self.read = 0

    def reading(self, _method, count):
        self.arrived = max(self.arrived, count)

    def has_read(self, _method, count):
        self.read = count


async def test_replicas_count_for_the_memory_that_they_take():
    """However short the names of their topics are, a replica and its size take more than a hundred bytes."""
    kept = Kept()
    handle = process_handle.ProcessHandle("kafka:9092", socket.socket(), lambda: True, kept)
    handle._calls[1] = process_handle._Call("log_dirs")
    sizes = {TopicPartition("t", number): 1 for number in range(5_000)}
    for kind, content in written("log_dirs", Answers({BrokerId(1): (LogDir("/", sizes),)})):
        handle._received(Head(kind, 1, 0), content)
    assert len(await handle._calls[1].done) == 1
    assert kept.arrived == kept.read > 60 * 5_000


@pytest.mark.parametrize("kind", [Kind.ROWS, Kind.ERRORS], ids=["rows", "errors"])
async def test_an_answer_counts_before_it_has_ended(kind):
    """A server may send pieces without end, and never the last one. Each counts before it is read."""
    kept = Kept()
    handle = process_handle.ProcessHandle("kafka:9092", socket.socket(), lambda: True, kept)
    handle._calls[1] = process_handle._Call("log_dirs")
    brokers = [BrokerId(number) for number in range(5_000)]
    logs = {broker: (LogDir("/", {TopicPartition("t", broker): 1}),) for broker in brokers[:1_000]}
    answer = (
        Answers(logs)
        if kind == Kind.ROWS
        else Answers({}, dict.fromkeys(brokers, Transient("KafkaUnreachable", "down")))
    )
    pieces = [content for of, content in written("log_dirs", answer) if of == kind]
    for content in pieces:
        handle._received(Head(kind, 1, 0), content)
    assert kept.arrived >= sum(len(content) for content in pieces)


class TestTheLog:
    async def test_a_process_cannot_fill_it(self, caplog):
        """Its server may claim 1,500 brokers, each of which gives a line in each reading."""
        handle = process_handle.ProcessHandle("kafka:9092", socket.socket(), lambda: True, None)
        for number in range(1000):
            handle._received(Head(Kind.LOG, logging.WARNING, 0), f"kafka_rebalance.x\nbroker {number}".encode())
        assert caplog.messages[:99] == [f"kafka:9092: broker {number}" for number in range(99)]
        assert caplog.messages[99:] == ["kafka:9092: more lines of its client in this minute are left out"]

    def test_lines_are_sent_without_credentials(self):
        """Libraries log their configuration, and what servers say."""
        sent = []
        handler = client_process._PipeHandler(
            lambda *line: sent.append(line), ConnectionSettings("kafka:9092", username="me", password="hunter2")
        )
        handler.emit(logging.LogRecord("lib", logging.ERROR, "", 0, "refused %s", ("hunter2",), None))
        assert sent == [(Kind.LOG, logging.ERROR, b"lib\nrefused \xe2\x80\xa2\xe2\x80\xa2\xe2\x80\xa2")]

    def test_a_credential_at_the_end_of_a_long_line(self):
        """The line is cut without it: the beginning of a credential would not be found any more."""
        sent = []
        settings = ConnectionSettings("kafka:9092", username="me", password="hunter2")
        handler = client_process._PipeHandler(lambda *line: sent.append(line), settings)
        handler.emit(logging.LogRecord("lib", logging.ERROR, "", 0, "x" * 3_996 + "hunter2" + "y" * 100, (), None))
        ((_, _, line),) = sent
        assert line.decode() == "lib\n" + "x" * 3_996 + "•••y"

    async def test_what_libraries_print_is_logged_without_credentials(self, caplog):
        """librdkafka prints what does not reach its callbacks."""
        errors, theirs = socket.socketpair()
        errors.setblocking(False)
        with theirs:
            theirs.sendall(b"one\nrefused hunter2\n")
        await process_handle._logged(errors, ConnectionSettings("kafka:9092", username="me", password="hunter2"))
        assert caplog.messages == ["kafka:9092: one", "kafka:9092: refused •••"]

    @pytest.mark.parametrize(("more", "last"), [(b"er2 again", ["kafka:9092: ••• again"]), (b"e" * 5000, [])])
    async def test_also_if_it_is_read_in_pieces(self, caplog, monkeypatch, more, last):
        """Also if the line ends after the limit of what is read."""
        errors, theirs = socket.socketpair()
        errors.setblocking(False)
        pieces = iter([b"one\nhunt", more, b""])

        async def recv(_socket, most):
            return next(pieces)[:most]

        monkeypatch.setattr(asyncio.get_running_loop(), "sock_recv", recv)
        with theirs:
            await process_handle._logged(errors, ConnectionSettings("kafka:9092", username="me", password="hunter2"))
        assert caplog.messages == ["kafka:9092: one", *last]


class TestTheClient:
    async def test_has_connections_that_hold_little(self, monkeypatch):
        """The kernel would let the buffer of each connection grow to several MiB."""
        given = []

        def connect(settings, *_):
            given.append(settings)
            raise EOFError

        monkeypatch.setattr(client_process, "connect", connect)
        monkeypatch.setattr(client_process._ClientProcess, "_log_through_the_pipe", lambda *_: None)
        pipe, theirs = socket.socketpair()
        with pipe, theirs:
            settings = ConnectionSettings("kafka:9092")
            pipe.sendall(framed(Kind.CALL, 0, pickle.dumps((settings, logging.INFO, ""))))
            with pytest.raises(EOFError):
                await client_process._ClientProcess(theirs).run()
        with socket.socket() as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, given[0].receive_buffer_bytes)
            assert one.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == SOCKET_BYTES


class TestProcesses:
    async def test_one_that_hangs_is_ended(self, clients, healthy, monkeypatch):
        """A library that holds Python's lock blocks the whole process, so the process cannot report it."""
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        assert await states(admin)
        (process,) = clients.processes
        monkeypatch.setattr(process_handle, "_TICK_SECONDS", 0.2)
        os.kill(process, signal.SIGSTOP)
        with pytest.raises(Transient, match="did nothing") as ended:
            await states(admin)
        assert ended.value.reason == "KafkaClientEnded"
        await until("the process is ended", lambda: process not in clients.processes)

    async def test_a_call_that_is_cancelled_leaves_it_usable(self, clients, healthy):
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        await states(admin)
        (process,) = clients.processes
        os.kill(process, signal.SIGSTOP)
        reading = asyncio.create_task(states(admin))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        os.kill(process, signal.SIGCONT)
        assert len(await states(admin)) == 3
        assert clients.processes == [process]

    async def test_one_that_crashes_leaves_no_core_file(self, clients, healthy):
        """It would contain credentials."""
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        assert await states(admin)
        (process,) = clients.processes
        assert resource.prlimit(process, resource.RLIMIT_CORE) == (0, 0)

    async def test_closing_ends_it(self, clients, healthy):
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        await states(admin)
        await admin.close()
        await until("the process is ended", lambda: not clients.processes)
        with pytest.raises(Transient, match="closed"):
            await states(admin)

    async def test_closing_ends_one_that_hangs(self, clients, healthy, monkeypatch):
        monkeypatch.setattr(process_handle, "_CLOSE_SECONDS", 0.1)
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        await states(admin)
        os.kill(clients.processes[0], signal.SIGSTOP)
        await admin.close()
        await until("the process is ended", lambda: not clients.processes)

    async def test_no_zombie_is_left(self, clients, healthy):
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        await states(admin)

        def listed():
            return subprocess.run(["ps", "--ppid", str(clients.forking)], capture_output=True, text=True).stdout

        assert "python" in listed()
        os.kill(clients.processes[0], signal.SIGKILL)
        await until("the process is reaped", lambda: "python" not in listed())

    async def test_the_forking_process_is_replaced(self, clients, clock, healthy):
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        await states(admin)
        before = clients.forking, clients.processes[0]
        os.kill(clients.forking, signal.SIGKILL)
        await until("its processes have ended", lambda: not any(map(maps_of, before)))
        with pytest.raises(Transient):
            await states(admin)
        clock.now += 60
        assert await states(admin)
        assert clients.forking != before[0]

    async def test_one_that_cannot_be_started(self, clients, healthy, monkeypatch):
        """For example with too many open files. This is an error of the connection, and is retried."""

        def fork(*_):
            raise OSError("Too many open files")

        with monkeypatch.context() as patch:
            patch.setattr(process_handle.ForkingProcess, "fork", fork)
            admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
            with pytest.raises(Transient, match="Too many open files") as failed:
                await states(admin)
        assert failed.value.reason == "KafkaClientEnded"
        assert await states(admin)

    async def test_credentials_are_in_no_argument_and_no_environment(self, clients):
        secret = "the-password-of-the-test"
        async with HostileServer() as server:
            settings = ConnectionSettings(
                server.address, sasl_mechanism=SaslMechanism.PLAIN, username="me", password=secret
            )
            calling = asyncio.create_task(clients.connect(settings, LEADING).topic_ids(["t"]))
            await until("the process has connected", lambda: server.asked)
            for pid in (clients.forking, *clients.processes):
                assert secret.encode() not in given_to(pid)
            calling.cancel()

    async def test_its_log_lines_are_written_here(self, clients, caplog):
        """With the server that they are about, and without credentials."""
        async with HostileServer(topic="") as server:
            settings = ConnectionSettings(server.address, username="me", password="Results length")
            with pytest.raises(Transient, match="unexpected error"):
                await clients.connect(settings, LEADING).describe_cluster()
        (line,) = [record for record in caplog.records if record.name.startswith("kafka_rebalance.")]
        assert (line.levelname, "Results length" in line.getMessage()) == ("ERROR", False)
        assert f"{server.address}: describe_cluster: unexpected error\n" in line.getMessage()


OPERATOR = """
import asyncio, sys
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated.isolated_admin import IsolatedClients
from kafka_rebalance.kafka.settings import ConnectionSettings

async def main():
    clients = IsolatedClients()
    admin = clients.connect(ConnectionSettings(sys.argv[1]), Fence(lambda: True), "team")
    await admin.topic_ids(["t"])
    print(clients._forking._process.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


class TestTheOperatorEnds:
    @pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
    async def test_no_process_is_left(self, healthy, how):
        """Even if the operator is killed, because a process without an operator could execute its last calls."""
        operator = await asyncio.create_subprocess_exec(
            sys.executable, "-c", OPERATOR, healthy.address, stdout=asyncio.subprocess.PIPE
        )
        forking = int(await operator.stdout.readline())
        processes = [forking, *children_of(forking)]
        assert len(processes) == 2
        operator.send_signal(how)
        await operator.wait()
        await until("all have ended", lambda: not any(map(maps_of, processes)))
