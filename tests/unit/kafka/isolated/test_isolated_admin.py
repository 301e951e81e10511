"""An untrusted server can affect only the client that connects to it."""

import asyncio
import os
import signal
import threading
from pathlib import Path

import pytest
from tests.fakes.hostile_server import CRASHING, INCREMENTAL_ALTER_CONFIGS, HostileServer
from tests.unit.kafka.isolated.isolated_clients import LEADING, states, until

from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.kafka.admin import connect
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kafka.isolated import isolated_admin, kept_answers, process_handle
from kafka_rebalance.kafka.ports import CALL_SECONDS, ConfigChange, ConfigOp
from kafka_rebalance.kafka.settings import ConnectionSettings
from kafka_rebalance.reconcile import engines

_MIB = 2**20
CHANGES = {"t": [ConfigChange("retention.ms", ConfigOp.SET, "1")]}


def memory():
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


async def largest_growth(work):
    """The most memory in bytes that this process needs in addition while ``work`` runs."""
    before, most = memory(), 0
    task = asyncio.ensure_future(work)
    while not task.done():
        await asyncio.wait({task}, timeout=0.01)
        most = max(most, memory() - before)
    return most


class TestServersThatCrashTheirClient:
    @pytest.mark.parametrize("case", CRASHING)
    async def test_is_an_error_of_their_connection_only(self, clients, healthy, case):
        """In the operator's own process, this answer would crash the operator, again after each restart."""
        async with HostileServer(**CRASHING[case]) as hostile:
            admin = clients.connect(ConnectionSettings(hostile.address), LEADING)
            neighbour = clients.connect(ConnectionSettings(healthy.address), LEADING)
            before = await states(neighbour)
            (running,) = clients.processes
            with pytest.raises(Transient, match=r"crashed \(SIGSEGV\)") as ended:
                await admin.describe_cluster()
            assert ended.value.reason == "KafkaClientEnded"
            assert hostile.address in ended.value.message
            assert await states(neighbour) == before
            assert clients.processes == [running]

    async def test_is_started_again_after_a_pause_that_grows(self, clients, clock):
        """It is not started at once, so that a server that crashes each process does not keep the operator busy."""
        async with HostileServer(host=None) as hostile:
            admin = clients.connect(ConnectionSettings(hostile.address), LEADING)
            pauses = []
            for _ in range(7):
                with pytest.raises(Transient, match="SIGSEGV") as ended:
                    await admin.describe_cluster()
                asked = len(hostile.asked)
                pauses.append(round(ended.value.retry_after))
                clock.now += ended.value.retry_after - 0.5
                with pytest.raises(Transient, match="SIGSEGV"):
                    await admin.describe_cluster()
                assert len(hostile.asked) == asked
                clock.now += 0.6
        assert pauses == [2, 4, 8, 16, 32, 60, 60]

    async def test_works_again_when_the_server_does(self, clients, clock):
        async with HostileServer(host=None) as server:
            server.partitions = {"t": 1}
            admin = clients.connect(ConnectionSettings(server.address), LEADING)
            with pytest.raises(Transient):
                await admin.describe_cluster()
            server.host = "127.0.0.1"
            clock.now += 60
            assert len(await states(admin)) == 1


class TestServersThatFillTheMemory:
    """The memory is that of the operator. Clients in its own process need 550 to 650 MiB for these servers."""

    async def test_many_brokers(self, clients, caplog, capfd):
        """librdkafka starts a thread for each broker that a server claims, and prints a line for each failure."""
        async with HostileServer(brokers=6_000) as hostile:
            admin = clients.connect(ConnectionSettings(hostile.address), LEADING)

            async def ask():
                with pytest.raises(Transient) as ended:
                    await admin.topic_ids(["t"])
                assert ended.value.reason in {"KafkaClientEnded", "KafkaUnreachable"}

            assert await largest_growth(ask()) < 200 * _MIB
            await admin.close()
            assert clients.processes == []
        printed = [line for line in caplog.messages if line.startswith(hostile.address)]
        assert 1 <= len(printed) <= 30
        assert capfd.readouterr().err == ""

    async def test_long_answers(self, clients):
        """librdkafka keeps answers of up to 95 MiB in memory, also before their end arrives."""
        async with HostileServer(unfinished_mib=90) as hostile:

            async def ask():
                admin = clients.connect(ConnectionSettings(hostile.address), LEADING)
                with pytest.raises(Transient):
                    await admin.list_reassignments()

            assert await largest_growth(asyncio.gather(*(ask() for _ in range(6)))) < 200 * _MIB

    async def test_many_partitions_are_more_than_an_answer_may_have(self, clients, healthy, monkeypatch):
        """The operator keeps answers in memory, so their size is bounded."""
        monkeypatch.setattr("kafka_rebalance.kafka.isolated.frames.LONGEST_ANSWER", 1_000)
        healthy.partitions = {"t": 100}
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        with pytest.raises(Transient, match="invalid or too long") as ended:
            await states(admin)
        assert ended.value.reason == "KafkaClientEnded"
        await until("the process is ended", lambda: not clients.processes)


class TestAnswersThatTheOperatorKeeps:
    async def test_are_limited_for_a_namespace(self, clients, healthy, monkeypatch, clock):
        """Each of many connections could otherwise add a hundred MiB to the memory of the operator."""
        monkeypatch.setattr(kept_answers, "_SHORT_BYTES", 1_000)
        healthy.partitions = {"t": 100}
        first, second = (clients.connect(ConnectionSettings(healthy.address), LEADING) for _ in range(2))
        other = clients.connect(ConnectionSettings(healthy.address), LEADING, "other-team")
        assert len(await states(first)) == 100
        (size,) = {client.count for client in clients._kept._of} - {0}
        monkeypatch.setattr(kept_answers, "NAMESPACE_BYTES", size * 3 // 2)
        with pytest.raises(Transient, match="answers to the inline connections of this namespace") as ended:
            await states(second)
        assert ended.value.reason == "KafkaClientEnded"
        assert len(await states(first)) == len(await states(other)) == 100
        await first.close()
        clock.now += 60
        assert len(await states(second)) == 100


class TestAnswers:
    async def test_are_those_of_a_client_in_this_process(self, clients, healthy):
        own = connect(ConnectionSettings(healthy.address), LEADING)
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        assert await states(admin) == await states(own) != {}
        await own.close()

    async def test_errors_too(self, clients):
        admin = clients.connect(ConnectionSettings("127.0.0.1:1"), LEADING)
        with pytest.raises(Transient, match=r"127.0.0.1:1 to connect: .*Connection refused") as refused:
            await admin.describe_cluster()
        assert refused.value.reason == "KafkaUnreachable"

    async def test_calls_are_answered_side_by_side(self, clients, healthy):
        """A call that waits for a server does not delay others."""
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        assert len(await states(admin)) == 3  # its process has started: an order may be sent within 12 s only
        waiting = asyncio.create_task(admin.alter_topic_configs(CHANGES))
        await until("the order is sent", lambda: INCREMENTAL_ALTER_CONFIGS in healthy.asked)
        assert len(await states(admin)) == 3
        waiting.cancel()

    async def test_other_names_are_no_methods(self, clients):
        """As of any object: `hasattr` must not answer yes to all."""
        assert not hasattr(clients.connect(ConnectionSettings("kafka:9092"), LEADING), "eval")


class TestOrders:
    async def test_pass_the_fence_here(self, clients, healthy):
        admin = clients.connect(ConnectionSettings(healthy.address), Fence(lambda: False))
        with pytest.raises(Transient) as refused:
            await admin.alter_topic_configs(CHANGES)
        assert refused.value.reason == "NotLeading"
        assert healthy.asked == []

    async def test_pass_it_again_right_before_they_are_sent(self, clients, healthy):
        """The lease may be lost while the process starts and connects."""
        leads = iter([True, False])
        admin = clients.connect(ConnectionSettings(healthy.address), Fence(lambda: next(leads)))
        with pytest.raises(Transient) as refused:
            await admin.alter_topic_configs(CHANGES)
        assert refused.value.reason == "NotLeading"
        assert INCREMENTAL_ALTER_CONFIGS not in healthy.asked

    async def test_without_an_answer_may_have_been_carried_out(self, clients, healthy):
        """If the process is killed after the order was sent, the reply is lost.

        This is neither a success nor a refusal.
        """
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        ordered = asyncio.create_task(admin.alter_topic_configs(CHANGES))
        await until("the order is sent", lambda: INCREMENTAL_ALTER_CONFIGS in healthy.asked)
        (process,) = clients.processes
        os.kill(process, signal.SIGKILL)
        with pytest.raises(Transient, match=r"to alter_topic_configs: .*crashed \(SIGKILL\)") as lost:
            await ordered
        assert lost.value.reason == "KafkaClientEnded"

    async def test_are_waited_for_when_their_caller_is_cancelled(self, clients, healthy):
        """The operator releases its lease only when no order is in progress."""
        fence = Fence(lambda: True)
        admin = clients.connect(ConnectionSettings(healthy.address), fence)
        ordered = asyncio.create_task(admin.alter_topic_configs(CHANGES))
        await until("the order is sent", lambda: INCREMENTAL_ALTER_CONFIGS in healthy.asked)
        ordered.cancel()
        idle = asyncio.create_task(fence.wait_until_idle())
        await asyncio.gather(ordered, return_exceptions=True)
        assert not idle.done()
        os.kill(clients.processes[0], signal.SIGKILL)
        await idle

    async def test_without_an_answer_in_time_are_not_sent_later(self, clients, healthy, monkeypatch):
        """Another owner may operate the cluster by then, while this operator leads all the time."""
        monkeypatch.setattr(isolated_admin, "_ORDER_SECONDS", 0.5)
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        await states(admin)
        (process,) = clients.processes
        os.kill(process, signal.SIGSTOP)
        with pytest.raises(Transient, match="did not answer an order") as lost:
            await admin.alter_topic_configs(CHANGES)
        assert lost.value.reason == "KafkaClientEnded"
        await until("the process is ended", lambda: process not in clients.processes)
        assert INCREMENTAL_ALTER_CONFIGS not in healthy.asked

    async def test_of_the_next_process_reach_one_cluster(self, clients, healthy, clock):
        """The server chooses when its process ends, and where the next one is led."""
        admin = clients.connect(ConnectionSettings(healthy.address), LEADING)
        assert (await admin.describe_cluster()).cluster_id == "a-cluster"
        (process,) = clients.processes
        os.kill(process, signal.SIGKILL)
        with pytest.raises(Transient):
            await states(admin)
        healthy.cluster_id = "another-cluster"
        clock.now += 60
        with pytest.raises(Refused) as refused:
            await admin.alter_topic_configs(CHANGES)
        assert refused.value.reason == "OtherCluster"
        assert INCREMENTAL_ALTER_CONFIGS not in healthy.asked

    async def test_end_in_time_also_if_no_process_starts(self, clients, healthy, monkeypatch):
        monkeypatch.setattr(isolated_admin, "_ORDER_SECONDS", 0.2)
        started = threading.Event()
        monkeypatch.setattr(process_handle.ForkingProcess, "fork", lambda *_: started.wait(20))
        with pytest.raises(Transient, match="did not answer an order"):
            await clients.connect(ConnectionSettings(healthy.address), LEADING).alter_topic_configs(CHANGES)
        started.set()

    def test_have_time_for_the_error_of_the_client_and_end_before_another_owner_begins(self):
        assert CALL_SECONDS < isolated_admin._ORDER_SECONDS < engines._LATE_SECONDS
