"""Reassignments, log dirs and the list of brokers, through kafka-python.

librdkafka lacks KIP-455's two calls and log dirs. And it aborts the process when it describes a cluster whose brokers
are all fenced, as they are for a moment after the quorum hung (in 2.16 `rd_kafka_DescribeClusterResponse_parse` fails
without an error, and an assertion notices).

This file only translates; the rule that a partition in flight is sent nothing but a cancellation is in `admin`. The
client is created on first use and dropped whenever its connection fails: it would keep using the broker that it took
for the controller.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.kafka.answering_cluster import MOST, AnsweringCluster
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.failures import authentication_failed, authorization_failed, too_old, unreachable
from kafka_rebalance.kafka.ports import (
    CALL_SECONDS,
    AlterCode,
    Answers,
    ClusterInfo,
    LogDir,
    LogDirCode,
    Reassignment,
)
from kafka_rebalance.kafka.python_client import (
    BROKER_SECONDS,
    TOO_OLD,
    ClientPartition,
    PythonClient,
    TokenProvider,
    client_errors,
)
from kafka_rebalance.kafka.settings import kafka_python_config
from kafka_rebalance.model.topology import Broker, BrokerId, ReplicaKey, Replicas, TopicPartition
from kafka_rebalance.reasons import Reason

T = TypeVar("T")

PARTITIONS_PER_ALTER = 2_000
"""The controller answers with an unknown error to what exceeds 10,000 records of one request."""
_CALL_SHARE_SECONDS = 2.0
"""The part of a call's time that connecting leaves for the call itself."""
_STALE_SECONDS = 3.0
"""For a read over an existing connection; the rest of the call's time is for a new one."""
_CHECK_SECONDS = 2.0
"""How long an order waits for brokers to say to which cluster they belong."""
_ATTEMPT_SECONDS = (1.5, 1.5, 2.0, 3.0)
_THREADS = 16
_LONGEST_PATH = 4_096
"""Characters of the path of a log dir, which each row of a sample has. Linux opens no longer one."""
_log = logging.getLogger(__name__)

_IDLE = {"Empty", "Dead"}
"""States of a group without members."""
_OPERATIONS = {7: "Alter", 8: "Describe", 10: "DescribeConfigs", 11: "AlterConfigs"}
"""The codes of AclOperation that are of interest here."""
_CODES: dict[type[Exception] | None, AlterCode] = {
    None: AlterCode.OK,
    client_errors.NoReassignmentInProgressError: AlterCode.NO_REASSIGNMENT_IN_PROGRESS,
    client_errors.InvalidReplicationAssignmentError: AlterCode.INVALID_REPLICA_ASSIGNMENT,
    client_errors.UnknownTopicOrPartitionError: AlterCode.UNKNOWN_TOPIC_OR_PARTITION,
    client_errors.ClusterAuthorizationFailedError: AlterCode.NOT_AUTHORIZED,
    client_errors.TopicAuthorizationFailedError: AlterCode.NOT_AUTHORIZED,
}


_DIR_CODES: dict[int, LogDirCode] = {
    client_errors.NoError.errno: LogDirCode.OK,
    client_errors.ReplicaNotAvailableError.errno: LogDirCode.NOT_THERE,
    client_errors.LogDirNotFoundError.errno: LogDirCode.LOG_DIR_NOT_FOUND,
    client_errors.KafkaStorageError.errno: LogDirCode.LOG_DIR_OFFLINE,
    client_errors.UnknownTopicOrPartitionError.errno: LogDirCode.UNKNOWN_TOPIC_OR_PARTITION,
    client_errors.ClusterAuthorizationFailedError.errno: LogDirCode.NOT_AUTHORIZED,
}


class ReassignmentClient:
    """One cluster through kafka-python. Requests that alter reassignments or log dirs are orders."""

    def __init__(self, access: ClientAccess) -> None:
        self._settings = access.settings
        self._tokens = access.tokens
        self._before_order = access.before_order
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kafka-reassignment")
        self._client: PythonClient | None = None
        self._building = asyncio.Lock()
        self._answering = AnsweringCluster(access.cluster_id)
        self._asking: set[asyncio.Task[None]] = set()
        self._turns_to_ask = asyncio.Semaphore(MOST)

    async def describe_cluster(self) -> ClusterInfo:
        """Cluster id and the unfenced brokers (KIP-700). Refused("OtherCluster") if the first id was another one."""
        action = "describe the cluster"
        answer, version = await self._read(action, lambda client: (client.cluster(), client.version()))
        if answer.error_code:
            raise self._failure(action, client_errors.for_code(answer.error_code)())
        brokers = [Broker(BrokerId(b.broker_id), b.rack, b.host, b.port) for b in answer.brokers]
        try:
            self._answering.described(answer.cluster_id, brokers)
        except Refused:
            self._drop(self._client)
            raise
        return ClusterInfo(answer.cluster_id, {broker.id: broker for broker in brokers}, version)

    async def authorized_operations(self) -> frozenset[str]:
        """What we may do on the cluster (KIP-430); nothing without Describe."""
        answer = await self._read("ask what is permitted", lambda client: client.cluster(operations=True))
        if answer.error_code:
            raise self._failure("ask what is permitted", client_errors.for_code(answer.error_code)())
        return frozenset(name for code, name in _OPERATIONS.items() if code in answer.authorized_operations)

    async def list_reassignments(self) -> dict[TopicPartition, Reassignment]:
        """Everything in flight in the cluster."""
        rows = await self._read("list reassignments", lambda client: client.list_partition_reassignments())
        return {
            TopicPartition(tp.topic, tp.partition): Reassignment(
                _ids(row["replicas"]), _ids(row["adding_replicas"]), _ids(row["removing_replicas"])
            )
            for tp, row in rows.items()
        }

    async def check_brokers(self, concerned: Collection[BrokerId] = ()) -> None:
        """Before an order of the other library: Refused("OtherCluster") if a broker belongs to another cluster.

        Those that the order concerns are asked, and some others, once a minute, a few at the same time. It does not
        wait for long for brokers that do not answer; those whose turn has not come by then are asked before a later
        order.
        """
        await self._know_cluster()
        due, begun = self._answering.to_ask(concerned), set[BrokerId]()
        asking = {asyncio.create_task(self._ask_cluster_id(broker, begun)): broker for broker in due}
        for task in asking:
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        if asking:
            try:
                await asyncio.wait(asking, timeout=_CHECK_SECONDS)
            finally:
                late = {broker: task for task, broker in asking.items() if broker not in begun}
                for task in late.values():
                    task.cancel()
                self._answering.not_asked(late.keys())
        self._answering.check()

    async def alter(self, orders: Mapping[TopicPartition, Replicas | None]) -> dict[TopicPartition, AlterCode]:
        """Send the orders as they are. If a request after the first gets no answer, its partitions are UNKNOWN."""
        await self._know_cluster()
        codes = dict.fromkeys(orders, AlterCode.UNKNOWN)
        waiting = sorted(orders)
        for start in range(0, len(waiting), PARTITIONS_PER_ALTER):
            batch = waiting[start : start + PARTITIONS_PER_ALTER]
            try:
                codes |= await self._alter_batch({tp: orders[tp] for tp in batch})
            except Permanent as denied:
                if denied.reason != Reason.KAFKA_AUTHORIZATION_FAILED:
                    raise
                codes |= dict.fromkeys(waiting[start:], AlterCode.NOT_AUTHORIZED)  # Kafka says it once for all
                break
            except Transient as lost:
                if start == 0:
                    raise
                _log.warning("%s; the outcome of %d of %d orders is unknown", lost, len(waiting) - start, len(waiting))
                break
        return codes

    async def log_dirs(self, brokers: Collection[BrokerId]) -> Answers[BrokerId, tuple[LogDir, ...], BrokerId]:
        """From all brokers in parallel; those that do not answer are absent."""
        wanted = sorted(set(brokers))
        answers = await asyncio.gather(*(self._log_dirs_of(broker) for broker in wanted))
        each = dict(zip(wanted, answers, strict=True))
        return Answers(
            {broker: found for broker, found in each.items() if isinstance(found, tuple)},
            {broker: found for broker, found in each.items() if isinstance(found, RebalanceError)},
        )

    async def alter_log_dirs(self, orders: Mapping[ReplicaKey, str]) -> dict[ReplicaKey, LogDirCode]:
        """To all brokers in parallel; what one that does not answer was asked for is UNKNOWN."""
        await self._know_cluster()
        of_broker: dict[BrokerId, dict[TopicPartition, str]] = {}
        for (tp, broker), path in orders.items():
            of_broker.setdefault(broker, {})[tp] = path
        answers = await asyncio.gather(*(self._alter_log_dirs_of(broker, of) for broker, of in of_broker.items()))
        found = {key: code for answer in answers for key, code in answer.items()}
        return {key: found.get(key, LogDirCode.UNKNOWN) for key in orders}

    async def consumer_groups(self) -> dict[str, bool]:
        """The groups of all brokers, in parallel, and whether each is a share group in use (KIP-932).

        librdkafka's own call leaves share groups out.
        """
        brokers = (await self.describe_cluster()).brokers
        answers = await asyncio.gather(*(self._groups_of(broker) for broker in sorted(brokers)))
        return {group.group_id: _shares(group) for groups in answers for group in groups}

    async def close(self) -> None:
        """Close the connections, which ends pending calls, and stop the threads."""
        for task in self._asking:
            task.cancel()
        self._drop(self._client)
        self._threads.shutdown(wait=False)

    async def _alter_batch(self, orders: Mapping[TopicPartition, Replicas | None]) -> dict[TopicPartition, AlterCode]:
        wanted = {
            ClientPartition(tp.topic, tp.partition): None if replicas is None else [int(b) for b in replicas]
            for tp, replicas in orders.items()
        }

        answered = await self._call("alter reassignments", lambda client: client.alter(wanted, self._may_send))
        return {
            TopicPartition(tp.topic, tp.partition): _CODES.get(error, AlterCode.UNKNOWN)
            for tp, error in answered.items()
        }

    async def _log_dirs_of(self, broker: BrokerId) -> tuple[LogDir, ...] | RebalanceError | None:
        action = f"describe the log dirs of broker {broker}"
        answer = await self._of_broker(action, lambda client: client.log_dirs_of(broker))
        if isinstance(answer, RebalanceError):
            return None
        code = getattr(answer, "error_code", None) or 0
        if code:
            return self._failure(action, client_errors.for_code(code)())
        # A broker may hold many thousands of replicas.
        rows = [row for row in answer.results if row.error_code == 0]
        if any(len(row.log_dir) > _LONGEST_PATH for row in rows):
            detail = f"its answer names a log dir whose path has more than {_LONGEST_PATH} characters"
            return unreachable(self._settings, action, detail)
        return await asyncio.to_thread(lambda: tuple(map(_log_dir, rows)))

    async def _alter_log_dirs_of(
        self, broker: BrokerId, paths: Mapping[TopicPartition, str]
    ) -> dict[ReplicaKey, LogDirCode]:
        action = f"move replicas between the log dirs of broker {broker}"
        answer = await self._of_broker(action, lambda client: client.alter_log_dirs_of(broker, paths, self._may_send))
        topics = () if isinstance(answer, RebalanceError) else answer.results
        rows = [(topic.topic_name, row) for topic in topics for row in topic.partitions]
        return {
            (TopicPartition(topic, row.partition_index), broker): _DIR_CODES.get(row.error_code, LogDirCode.UNKNOWN)
            for topic, row in rows
        }

    def _may_send(self, broker: int | None, cluster_id: str) -> None:
        self._answering.answered(broker, cluster_id)
        self._before_order()

    async def _know_cluster(self) -> None:
        """Raises if it is not known which cluster the orders are for."""
        self._answering.check()
        if not self._answering.has_been_described:
            await self.describe_cluster()

    async def _ask_cluster_id(self, broker: BrokerId, begun: set[BrokerId]) -> None:
        """``check_brokers`` finds what was noted here. ``begun``: gets the broker as soon as it is asked."""
        action = f"ask broker {broker} for its cluster id"
        async with self._turns_to_ask:
            begun.add(broker)
            with contextlib.suppress(RebalanceError):
                await self._of_broker(
                    action, lambda client: self._answering.answered(broker, client.cluster_id_of(broker))
                )

    async def _of_broker(self, action: str, call: Callable[[PythonClient], Any]) -> Any:
        """What one broker answers, or the error of one that does not."""
        client = await self._connected(CALL_SECONDS - BROKER_SECONDS)
        try:
            return await self._in_thread(lambda: call(client), BROKER_SECONDS)
        except Refused:
            self._drop(client)  # its connection leads to another cluster
            raise
        except (TimeoutError, client_errors.KafkaError) as error:
            _log.info("%s", unreachable(self._settings, action, error))
            return self._failure(action, error)

    async def _groups_of(self, broker: BrokerId) -> Collection[Any]:
        action = f"list the consumer groups of broker {broker}"
        answer = await self._of_broker(action, lambda client: client.groups_of(broker))
        if isinstance(answer, RebalanceError):
            raise answer
        if answer.error_code:
            raise self._failure(action, client_errors.for_code(answer.error_code)())
        groups: Collection[Any] = answer.groups
        return groups

    async def _read(self, action: str, call: Callable[[PythonClient], T]) -> T:
        """Retry once on a new connection: a broken one says nothing about the cluster."""
        if self._client is None:
            return await self._call(action, call)
        try:
            return await self._call(action, call, _STALE_SECONDS)
        except Transient as stale:
            _log.debug("%s; asking again on a new connection", stale)
            return await self._call(action, call, CALL_SECONDS - _STALE_SECONDS)

    async def _call(self, action: str, call: Callable[[PythonClient], T], seconds: float = CALL_SECONDS) -> T:
        deadline = time.monotonic() + seconds
        client = await self._connected(seconds - _CALL_SHARE_SECONDS)
        try:
            return await self._in_thread(lambda: call(client), deadline - time.monotonic())
        except Refused:
            self._drop(client)  # its connection leads to another cluster
            raise
        except (TimeoutError, RuntimeError, OSError, client_errors.KafkaError) as error:
            # kafka-python raises RuntimeError if it finds no controller.
            self._drop(client)
            raise self._failure(action, error) from error

    async def _connected(self, seconds: float) -> PythonClient:
        """The client, created on first use; raises if that takes longer than ``seconds``."""
        deadline = time.monotonic() + seconds
        async with self._building:
            if self._client is None:
                self._client = await self._connect(deadline)
            return self._client

    async def _connect(self, deadline: float) -> PythonClient:
        """Several attempts: kafka-python picks a random server and waits for that one, even if it hangs."""
        # In a thread: OpenSSL reads certificates and keys.
        config = await self._in_thread(lambda: kafka_python_config(self._settings), CALL_SECONDS)
        if self._tokens is not None:
            # First, because kafka-python reports a missing token as a connection that was closed.
            await self._in_thread(self._tokens.token, CALL_SECONDS)
            config["sasl_oauth_token_provider"] = TokenProvider(self._tokens)
        why: Exception = TimeoutError()
        for attempt in _ATTEMPT_SECONDS:
            left = min(attempt, deadline - time.monotonic())
            if left <= 0:
                break
            config["bootstrap_timeout_ms"] = round(left * 1000)
            try:
                return await self._in_thread(lambda: PythonClient(**config), CALL_SECONDS)
            except client_errors.KafkaTimeoutError as silent:
                why = silent
            except (TimeoutError, OSError, client_errors.KafkaError) as failed:
                raise self._failure("connect", failed) from failed
        raise self._failure("connect", why) from why

    async def _in_thread(self, call: Callable[[], T], seconds: float) -> T:
        async with asyncio.timeout(seconds):
            return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    def _drop(self, client: PythonClient | None) -> None:
        """Drop the client and close it in the background, which also ends the threads that wait in it."""
        if client is None:
            return
        if self._client is client:
            self._client = None
        self._threads.submit(client.close)

    def _failure(self, action: str, error: Exception) -> RebalanceError:
        if self._tokens is not None and self._tokens.failure is not None:
            return self._tokens.failure
        detail = "timed out" if isinstance(error, TimeoutError) else str(error) or type(error).__name__
        if isinstance(error, client_errors.SaslAuthenticationFailedError):
            return authentication_failed(self._settings, detail)
        if isinstance(error, TOO_OLD):
            return too_old(self._settings, action, detail)
        if isinstance(error, client_errors.AuthorizationError):
            return authorization_failed(self._settings, action, type(error).__name__)
        return unreachable(self._settings, action, detail, retry_after=1.0)


def _ids(numbers: Collection[int]) -> Replicas:
    return tuple(BrokerId(number) for number in numbers)


def _shares(group: Any) -> bool:
    """Brokers before 4.0 report no type, and have no share groups."""
    return (getattr(group, "group_type", "") or "").lower() == "share" and group.group_state not in _IDLE


def _log_dir(row: Any) -> LogDir:
    present: dict[TopicPartition, int] = {}
    future: dict[TopicPartition, int] = {}
    for topic in row.topics:
        for partition in topic.partitions:
            bytes_of = future if partition.is_future_key else present
            bytes_of[TopicPartition(topic.name, partition.partition_index)] = partition.partition_size
    return LogDir(row.log_dir, present, future, getattr(row, "total_bytes", -1), getattr(row, "usable_bytes", -1))
