"""Metadata, configs, elections and offsets, through confluent-kafka.

It only translates. Calls block in threads of this object, never in the event loop, and each keeps a reference to its
AdminClient: one that is garbage collected fails or loses its pending calls. Freeing one joins librdkafka's threads,
which takes seconds while one of them resolves a name: that is done in a daemon thread, where nothing waits for it.
"""

import asyncio
import contextlib
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for_futures
from functools import cache, partial
from typing import Any, TypeVar

from confluent_kafka import ElectionType, KafkaError, KafkaException, TopicCollection
from confluent_kafka import TopicPartition as ClientPartition
from confluent_kafka.admin import AdminClient, ConfigResource, ListOffsetsResultInfo, OffsetSpec, ResourceType

from kafka_rebalance.errors import Permanent, RebalanceError
from kafka_rebalance.kafka.client_access import ClientAccess
from kafka_rebalance.kafka.confluent_values import (
    AUTHENTICATION,
    AUTHORIZATION,
    ELECTION_CODES,
    NO_ANSWER,
    NO_TOPIC,
    by_leader,
    changed_resource,
    checked,
    config_values,
    merged,
    offset_ranges,
    operation_name,
    outcome,
    partition_states,
    separated,
    within,
)
from kafka_rebalance.kafka.failures import authentication_failed, authorization_failed, unreachable
from kafka_rebalance.kafka.last_answers import LastAnswers
from kafka_rebalance.kafka.ports import CALL_SECONDS, AlterCode, Answers, ConfigChange, ConfigValue, OffsetRange
from kafka_rebalance.kafka.settings import decoding, librdkafka_config
from kafka_rebalance.model.topology import BrokerId, PartitionState, TopicPartition
from kafka_rebalance.reasons import Reason

K = TypeVar("K")
V = TypeVar("V")

REQUEST_SECONDS = CALL_SECONDS - 2
BROKER_SECONDS = 4.0
"""For calls to one given broker: a dead one delays a call to all brokers by this much."""
_TICK_SECONDS = 0.2
_REFRESH_SECONDS = 1.0
_NO_TOPIC = "kafka-rebalance-no-such-topic"
_TIMEOUTS_BEFORE_REBUILD = 2
_THREADS = 8
_CLOSE_SECONDS = 1.0
"""How long `ConfluentClient.close` waits for librdkafka."""


class ConfluentClient:
    """One cluster through librdkafka."""

    def __init__(self, access: ClientAccess) -> None:
        self._settings = access.settings
        self._tokens = access.tokens
        self._checked = partial(checked, access.before_order)
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="kafka-confluent")
        self._state, self._building, self._polling = threading.Lock(), threading.Lock(), threading.Lock()
        self._refused: str | None = None
        self._last_error = ""
        self._timeouts = 0
        self._last_answers = LastAnswers()
        # Built in a thread of the first call: it waits for a token, and starts threads of its own.
        self._admin: AdminClient | None = None
        self._closed = False

    async def reach(self) -> None:
        """Connect, or raise why that is not possible."""
        nothing = TopicCollection([_NO_TOPIC])
        await self.ask_all("connect", lambda a: a.describe_topics(nothing, **within(REQUEST_SECONDS)))

    async def describe_partitions(self, topics: Collection[str] | None) -> Answers[TopicPartition, PartitionState, str]:
        """Partitions from metadata, without reassignments; unknown topics are absent."""
        names = sorted(set(topics)) if topics is not None else sorted((await self._in_thread(self._list_topics)).topics)
        if not names:
            return Answers()
        wanted = TopicCollection(names)
        answers = await self.ask_all("describe topics", lambda a: a.describe_topics(wanted, **within(REQUEST_SECONDS)))
        _, errors = await self._separated(answers, lambda name: f"describe topic {name}")
        # Of a large cluster that takes seconds.
        found = await asyncio.to_thread(partition_states, answers, self._last_answers.newest)
        found.errors = errors
        if topics is None:
            self._last_answers.note(found)
        return found

    async def topic_ids(self, topics: Collection[str] | None) -> Answers[str, str, str]:
        """The id of each topic if brokers report it; unknown topics are absent."""
        states = await self.describe_partitions(topics)
        return Answers({tp.topic: state.topic_id for tp, state in states.items() if state.topic_id}, states.errors)

    async def authorized_operations(self, topics: Collection[str]) -> Answers[str, frozenset[str], str]:
        """What we may do on each topic (KIP-430); unknown topics are absent."""
        if not topics:
            return Answers()
        wanted = TopicCollection(sorted(set(topics)))
        answers = await self.ask_all(
            "ask what is permitted",
            lambda a: a.describe_topics(wanted, include_authorized_operations=True, **within(REQUEST_SECONDS)),
        )
        topics_found, errors = await self._separated(answers, lambda name: f"describe topic {name}")
        found = {
            name: frozenset(map(operation_name, topic.authorized_operations or ()))
            for name, topic in topics_found.items()
        }
        return Answers(found, errors)

    async def elect_preferred(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, AlterCode]:
        """Preferred leader election; UNKNOWN where the answer is not conclusive."""
        if not partitions:
            return {}
        wanted = [ClientPartition(tp.topic, tp.partition) for tp in sorted(partitions)]
        answered = await self._one(
            "elect leaders",
            # confluent-kafka 2.16 raises SystemError for any time-out given here; socket.timeout.ms bounds the call.
            self._checked(lambda a: a.elect_leaders(ElectionType.PREFERRED, wanted)),
        )
        codes = dict.fromkeys(partitions, AlterCode.UNKNOWN)
        for partition, error in answered.items():
            code = KafkaError.NO_ERROR if error is None else error.code()
            codes[TopicPartition(partition.topic, partition.partition)] = ELECTION_CODES.get(code, AlterCode.UNKNOWN)
        return codes

    async def topic_configs(
        self, topics: Collection[str], names: Collection[str]
    ) -> Answers[str, dict[str, ConfigValue], str]:
        """Many topics in one call; unknown topics are absent."""
        if not topics:
            return Answers()
        action = "describe topic configs"
        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(set(topics))]
        answers = await self.ask_all(action, lambda a: a.describe_configs(resources, **within(REQUEST_SECONDS)))
        by_name = {resource.name: answer for resource, answer in answers.items()}
        found, errors = await self._separated(by_name, lambda topic: f"describe the configs of topic {topic}")
        return Answers({topic: config_values(entries, names) for topic, entries in found.items()}, errors)

    async def broker_configs(
        self, brokers: Collection[BrokerId], names: Collection[str]
    ) -> Answers[BrokerId, dict[str, ConfigValue], BrokerId]:
        """One call per broker, issued together; brokers without an answer are absent."""
        action = "describe broker configs"
        resources = [ConfigResource(ResourceType.BROKER, str(broker)) for broker in sorted(set(brokers))]
        answers = await self.ask_all(
            action,
            lambda a: merged(a.describe_configs([r], **within(BROKER_SECONDS)) for r in resources),
            of_one_broker=True,
        )
        by_id = {BrokerId(int(resource.name)): answer for resource, answer in answers.items()}
        found, errors = await self._separated(
            by_id, lambda broker: f"describe the configs of broker {broker}", NO_ANSWER
        )
        return Answers({broker: config_values(entries, names) for broker, entries in found.items()}, errors)

    async def alter_topic_configs(self, changes: Mapping[str, Collection[ConfigChange]]) -> dict[str, str | None]:
        """Many topics in one call; each fails on its own."""
        if not changes:
            return {}
        resources = [changed_resource(ResourceType.TOPIC, topic, wanted) for topic, wanted in sorted(changes.items())]
        answers = await self.ask_all(
            "alter topic configs",
            self._checked(lambda a: a.incremental_alter_configs(resources, **within(REQUEST_SECONDS))),
        )
        return await self._error_texts({resource.name: answer for resource, answer in answers.items()})

    async def alter_broker_configs(
        self, changes: Mapping[BrokerId, Collection[ConfigChange]]
    ) -> dict[BrokerId, str | None]:
        """One call per broker (librdkafka takes no more), issued together."""
        seconds = within(BROKER_SECONDS)
        resources = [
            changed_resource(ResourceType.BROKER, str(broker), wanted) for broker, wanted in sorted(changes.items())
        ]
        answers = await self.ask_all(
            "alter broker configs",
            self._checked(lambda a: merged(a.incremental_alter_configs([r], **seconds) for r in resources)),
            of_one_broker=True,
        )
        return await self._error_texts({BrokerId(int(resource.name)): answer for resource, answer in answers.items()})

    async def offsets(self, partitions: Collection[TopicPartition]) -> dict[TopicPartition, OffsetRange]:
        """First and next offsets of the partitions that have a leader, asked of each leader by itself.

        One call for all would answer when the slowest broker does. One missing topic fails a whole call in librdkafka,
        so metadata is read first.
        """
        led = by_leader((await self._in_thread(self._list_topics)).topics, partitions)
        if not led:
            return {}
        read: dict[TopicPartition, float] = {}
        starts, ends = await asyncio.gather(
            self._list_offsets(led, OffsetSpec.earliest(), {}), self._list_offsets(led, OffsetSpec.latest(), read)
        )
        return offset_ranges(starts, ends, read)

    async def close(self) -> None:
        """Stop the threads; busy ones end after librdkafka's call, or with the process. Calls without one fail."""
        self._closed = True  # calls that wait for a thread are not cancelled: that would end the tasks that made them
        loop, closed = asyncio.get_running_loop(), asyncio.Event()

        def free() -> None:
            self._threads.shutdown(wait=True)  # pending calls refer to the AdminClient
            self._admin = None
            with contextlib.suppress(RuntimeError):  # the loop may be closed by now
                loop.call_soon_threadsafe(closed.set)

        threading.Thread(target=free, name="kafka-confluent-close", daemon=True).start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await closed.wait()

    async def _list_offsets(
        self, groups: Collection[Collection[ClientPartition]], spec: OffsetSpec, read: dict[TopicPartition, float]
    ) -> dict[TopicPartition, ListOffsetsResultInfo]:
        """The offsets of each partition that answered; ``read`` gets the monotonic arrival times of the answers."""

        def stamp(tp: TopicPartition, _: Future[ListOffsetsResultInfo]) -> None:
            read[tp] = time.monotonic()

        def ask(admin: AdminClient) -> dict[ClientPartition, Future[ListOffsetsResultInfo]]:
            calls = (admin.list_offsets(dict.fromkeys(group, spec), **within(REQUEST_SECONDS)) for group in groups)
            futures = {partition: future for call in calls for partition, future in call.items()}
            for partition, future in futures.items():
                # Called as librdkafka delivers the answer; `_collect` wakes up later.
                future.add_done_callback(partial(stamp, TopicPartition(partition.topic, partition.partition)))
            return futures

        answers = await self.ask_all("list offsets", ask)
        return {
            TopicPartition(partition.topic, partition.partition): answer
            for partition, answer in answers.items()
            if not isinstance(answer, KafkaError)
        }

    async def _one(self, action: str, ask: Callable[[AdminClient], Future[V]]) -> V:
        answer = (await self.ask_all(action, lambda admin: {"": ask(admin)}))[""]
        if isinstance(answer, KafkaError):
            raise self.failure(action, answer) from KafkaException(answer)
        return answer

    async def ask_all(
        self, action: str, ask: Callable[[AdminClient], Mapping[K, Future[V]]], *, of_one_broker: bool = False
    ) -> dict[K, V | KafkaError]:
        """The answer or the error of every future; raises if nothing answered or the credentials are wrong."""
        answers = await self._in_thread(lambda: self._collect(ask))
        silent = [a for a in answers.values() if isinstance(a, KafkaError) and a.code() in NO_ANSWER]
        if of_one_broker:
            return answers
        self._count(timed_out=bool(answers) and len(silent) == len(answers))
        if silent and len(silent) == len(answers):
            raise self.failure(action, silent[0]) from KafkaException(silent[0])
        return answers

    async def _in_thread(self, call: Callable[[], V]) -> V:
        def called() -> V:
            if self._closed:
                raise RuntimeError("the client was closed")
            try:
                return call()
            except Exception as error:
                # Its frames refer to the AdminClient, which must not be freed with the error, in the event loop.
                traceback.clear_frames(error.__traceback__)
                raise

        return await asyncio.get_running_loop().run_in_executor(self._threads, called)

    def _collect(self, ask: Callable[[AdminClient], Mapping[K, Future[V]]]) -> dict[K, V | KafkaError]:
        admin = self._client()
        self._refused = None
        self._last_error = ""
        futures = ask(admin)
        refreshed = time.monotonic()
        deadline = refreshed + CALL_SECONDS - 1
        pending: set[Future[V]] = set(futures.values())
        while pending and time.monotonic() < deadline:
            _, pending = wait_for_futures(pending, timeout=_TICK_SECONDS)
            self._poll(admin)
            if pending and self._refused:
                raise self._not_let_in(self._refused)
            if pending and time.monotonic() > refreshed + _REFRESH_SECONDS:
                refreshed = time.monotonic()
                self._refresh_metadata(admin)
        return {key: outcome(future) for key, future in futures.items()}

    def _refresh_metadata(self, admin: AdminClient) -> None:
        """Read metadata from any broker: it names the controller and wakes the calls that wait for one.

        While librdkafka knows no topic, it refreshes metadata at most every 10 s, even if the refresh interval is
        shorter, and keeps trying a dead controller meanwhile.
        """
        with contextlib.suppress(KafkaException):
            admin.list_topics(topic=_NO_TOPIC, timeout=_REFRESH_SECONDS)

    def _list_topics(self) -> Any:
        """The only call that blocks inside librdkafka."""
        admin = self._client()
        try:
            metadata = admin.list_topics(timeout=REQUEST_SECONDS)
        except KafkaException as error:
            self._poll(admin)
            self._count(timed_out=True)
            if self._refused:
                raise self._not_let_in(self._refused) from error
            raise self.failure("list topics", error.args[0]) from error
        self._count(timed_out=False)
        return metadata

    def _poll(self, admin: AdminClient) -> None:
        """Let librdkafka call `_on_error`; without polling its events would pile up."""
        if self._polling.acquire(blocking=False):
            try:
                admin.poll(0)
            finally:
                self._polling.release()

    def _on_error(self, error: KafkaError) -> None:
        if error.code() in AUTHENTICATION:
            self._refused = error.str()
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            self._last_error = error.str()

    def _not_let_in(self, why: str) -> RebalanceError:
        failure = self._tokens.failure if self._tokens is not None else None
        return failure or authentication_failed(self._settings, why)

    def _count(self, *, timed_out: bool) -> None:
        """Rebuild the client after two time-outs in a row: it may be stuck on a dead controller."""
        with self._state:
            self._timeouts = self._timeouts + 1 if timed_out else 0
            if self._timeouts < _TIMEOUTS_BEFORE_REBUILD:
                return
            self._timeouts = 0
            before, self._admin = [self._admin], None
        # The thread has the last reference, once the calls that are pending have ended in threads of their own.
        threading.Thread(target=before.clear, name="kafka-confluent-close", daemon=True).start()

    def _client(self) -> AdminClient:
        with self._building:
            admin = self._admin
            if admin is None:
                admin = self._admin = self._build()
            return admin

    def _build(self) -> AdminClient:
        config: dict[str, Any] = {**librdkafka_config(self._settings), "error_cb": self._on_error}
        if self._tokens is not None:
            self._tokens.token()  # without one the constructor says nothing else after 10 s
            config["oauth_cb"] = self._tokens.for_librdkafka
        try:
            with contextlib.nullcontext() if self._tokens else decoding():  # a token may be late
                return AdminClient(config)
        except KafkaException as error:
            # Not chained: librdkafka may quote the invalid value, which may be a secret.
            raise Permanent(Reason.KAFKA_SETTINGS_INVALID, self._settings.redact(error.args[0].str())) from None

    def failure(self, action: str, error: KafkaError) -> RebalanceError:
        """The error of a request, as ours."""
        if error.code() in AUTHORIZATION:
            return authorization_failed(self._settings, action, error.str())
        if error.code() in AUTHENTICATION or (self._tokens is not None and self._tokens.failure is not None):
            return self._not_let_in(error.str())
        why = f" ({self._last_error})" if error.code() in NO_ANSWER and self._last_error else ""
        return unreachable(self._settings, action, f"{error.str()}{why}")

    async def _separated(
        self, answers: Mapping[K, V | KafkaError], action: Callable[[K], str], left_out: Collection[int] = NO_TOPIC
    ) -> tuple[dict[K, V], dict[K, RebalanceError]]:
        def failure(key: K, error: KafkaError) -> RebalanceError:
            return self.failure(action(key), error)

        return await _beside_the_loop(answers, lambda: separated(answers, left_out, failure))

    async def _error_texts(self, answers: Mapping[K, object]) -> dict[K, str | None]:
        redact = cache(self._settings.redact)

        def text(answer: object) -> str | None:
            return redact(f"{answer.name()}: {answer.str()}") if isinstance(answer, KafkaError) else None

        return await _beside_the_loop(answers, lambda: {key: text(answer) for key, answer in answers.items()})


async def _beside_the_loop(answers: Mapping[K, object], work: Callable[[], V]) -> V:
    """The result of ``work``, which masks secrets in each error. Brokers choose how many there are, and their texts."""
    failed = any(isinstance(answer, KafkaError) for answer in answers.values())
    return await asyncio.to_thread(work) if failed else work()
