"""Samples the clusters of KafkaConnections with ``spec.sampling``: one task for each, beside the rounds of its engine.

A task has a client of its own, so no round waits for its calls. An edit ends the task, which may be reading for
minutes, and the next one begins after it: edits do not add up clients. Brokers that say that they are another cluster
than that on record of the owner put nothing into the lake. A sample that cannot be taken or stored costs only itself.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kafka_rebalance.api.connection_resource import Sampling
from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import Permanent, RebalanceError, Transient, without_traceback
from kafka_rebalance.kafka.ports import KafkaAdmin, KafkaReader
from kafka_rebalance.model.ownership import Owner
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import UNEXPECTED
from kafka_rebalance.reconcile.connection_book import NamedConnection
from kafka_rebalance.reconcile.engine import ClusterEngine
from kafka_rebalance.reconcile.engines import Engines
from kafka_rebalance.reconcile.report.sampling_report import SamplingState, StoredSample
from kafka_rebalance.reconcile.state.lasting_tasks import LastingTasks

log = logging.getLogger(__name__)

_LONGEST_PAUSE_SECONDS = 300.0
"""After failures, unless the interval is longer."""


class ClusterSampler(Protocol):
    """Takes the samples of one run."""

    async def sample(self) -> StoredSample | None:
        """Read the cluster and store the sample; None if it is not wanted any more.

        Raises a RebalanceError if the cluster or the store does not answer in a bounded time.
        """


class SampleLake(Protocol):
    """The place for the samples of all clusters."""

    def sampler(
        self, kafka: KafkaReader, wanted: Callable[[], bool], *, namespace: str, consumer_groups: bool
    ) -> ClusterSampler:
        """A sampler of this cluster, whose KafkaConnection is in this namespace.

        ``wanted`` is asked right before a sample is stored.
        """


@dataclass(frozen=True, slots=True)
class _Order:
    """What is sampled. ``settings``: the connection settings as JSON; ``engine``: of the cluster that the owner has."""

    sampling: Sampling
    settings: str
    engine: ClusterEngine


@dataclass(eq=False, slots=True)
class _Running:
    """``asks``: the connection that asks for other samples meanwhile; it is looked at when the task has ended."""

    connection: NamedConnection
    order: _Order
    ended: asyncio.Event
    task: asyncio.Task[None]
    asks: NamedConnection | None = None


class ConnectionSamplers:
    """All these tasks. ``lake`` None: the operator was started without one."""

    def __init__(self, lake: SampleLake | None, engines: Engines, lasting: LastingTasks, clock: Clock) -> None:
        self._lake = lake
        self._engines = engines
        self._lasting = lasting
        self._clock = clock
        self._running: dict[Owner, _Running] = {}

    def settle(self, connection: NamedConnection) -> None:
        """Sample as the KafkaConnection says now, or no longer. The settings must have led to the cluster."""
        order = _order_of(connection) if connection.verified == connection.kafka else None
        running = self._running.get(connection.owner)
        if running is not None and not running.ended.is_set():
            if running.order == order and running.connection is connection:
                return
            running.ended.set()
        if order is None:
            connection.sampling = None
        elif self._lake is None:
            connection.sampling = SamplingState(problem=_no_lake())
        else:
            connection.sampling = SamplingState() if connection.sampling is None else connection.sampling
            if running is None:
                self._begin(self._lake, connection, order)
            else:
                running.asks = connection

    def _begin(self, lake: SampleLake, connection: NamedConnection, order: _Order) -> None:
        ended = asyncio.Event()
        name = f"the sampling of {connection.owner}"
        task = self._lasting.start(name, self._keep_sampling(lake, connection, order, ended))
        self._running[connection.owner] = _Running(connection, order, ended, task)
        task.add_done_callback(lambda _: self._has_ended(connection.owner))

    def _has_ended(self, owner: Owner) -> None:
        running = self._running.pop(owner)
        (running.asks or running.connection).changed.set()

    async def _keep_sampling(
        self, lake: SampleLake, connection: NamedConnection, order: _Order, ended: asyncio.Event
    ) -> None:
        client: KafkaAdmin | None = None
        sampler: ClusterSampler | None = None
        failures = 0

        def wanted() -> bool:
            return not ended.is_set() and _order_of(connection) == order

        try:
            while wanted():
                began = self._clock.monotonic()
                try:
                    if client is None:
                        client = await self._engines.clients.another(connection, order.engine.cluster_id)
                    if sampler is None:
                        groups, namespace = order.sampling.consumer_groups, connection.owner.namespace
                        sampler = lake.sampler(client, wanted, namespace=namespace, consumer_groups=groups)
                    outcome: StoredSample | RebalanceError | None = await sampler.sample()
                except RebalanceError as error:
                    outcome = without_traceback(error)
                except Exception:
                    log.exception("%s: unexpected error in a sample", connection.name)
                    outcome = Transient(Reason.INTERNAL_ERROR, UNEXPECTED)
                if outcome is None or not wanted():
                    continue
                failures = failures + 1 if isinstance(outcome, RebalanceError) else 0
                _take_in(connection, outcome)
                pause = _pause(order.sampling.interval_seconds, failures) - (self._clock.monotonic() - began)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(max(0.0, pause)):
                        await ended.wait()
        finally:
            if client is not None:
                await _close(client, connection)


def _order_of(connection: NamedConnection) -> _Order | None:
    """None: it is not to be sampled, or its cluster is not known to be its own."""
    resource, engine = connection.resource, connection.engine
    if resource is None or resource.spec.sampling is None or engine is None:
        return None
    return _Order(resource.spec.sampling, connection.on_record, engine)


def _take_in(connection: NamedConnection, outcome: StoredSample | RebalanceError) -> None:
    """Note it for the status, which is written at once if it says something else."""
    before = connection.sampling or SamplingState()
    if isinstance(outcome, RebalanceError):
        log.warning("%s: no sample: %s: %s", connection.name, outcome.reason, outcome.message)
        after = before.with_failure(outcome)
    else:
        after = before.with_stored(outcome)
    connection.sampling = after
    if before.finding("") != after.finding(""):
        connection.changed.set()


def _pause(interval: float, failures: int) -> float:
    """Seconds from the begin of a sample to the next one: twice as many after each further failure."""
    return min(interval * 2.0 ** max(0, min(failures, 10) - 1), max(interval, _LONGEST_PAUSE_SECONDS))


def _no_lake() -> Permanent:
    return Permanent(
        Reason.NO_LAKE,
        "spec.sampling has no effect: start the operator with --samples, the lake for samples "
        "(in the chart, pipeline.sampler.connections or samples)",
    )


async def _close(client: KafkaAdmin, connection: NamedConnection) -> None:
    try:
        await client.close()
    except RebalanceError as error:
        log.warning("%s: the client for samples was not closed: %s", connection.name, error.message)
    except Exception:
        log.exception("%s: the client for samples was not closed", connection.name)
