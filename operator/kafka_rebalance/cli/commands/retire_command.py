"""kafka-rebalance retire: make ready for the removal of an operator, so that no object waits for it for ever.

``helm uninstall`` runs it in a Pod before anything is deleted. Nothing is changed before it is sure that the operator
may go; from then on either everything is done, or the operator runs again.
"""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import click

from kafka_rebalance.cli.options.duration import Duration
from kafka_rebalance.cli.options.namespace_scope import in_words, watched_namespaces
from kafka_rebalance.cli.options.resource_lookup import connected
from kafka_rebalance.errors import Permanent, Refused, Transient
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.installation import Installation
from kafka_rebalance.kube.lease import LEASE_NAME, LeaseHolder
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.retirement import Remains, Retirement

STOP_SECONDS = 120
"""For the operator to end: its grace period, and the lease of one that was killed."""
LET_GO_SECONDS = 15
"""For the operator to end deletions that shall not be carried out: it closes their runs, which we do not."""
_LOOK_SECONDS = 2.0
_ENDS = (signal.SIGTERM, signal.SIGINT)


class UnderWay(StrEnum):
    """What to do about what the operator has begun and not finished."""

    REFUSE = "refuse"
    WAIT = "wait"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Order:
    """What the command line asks for. ``namespaces`` empty: all. ``deployment``: to be scaled down."""

    namespaces: tuple[str, ...]
    under_way: UnderWay = UnderWay.REFUSE
    timeout_seconds: float = 0
    deployment: str | None = None
    replicas: int = 1
    forget: bool = False


@click.command("retire")
@watched_namespaces
@click.option("--own-namespace", help="Where the operator keeps its records; where this runs, unless given.")
@click.option(
    "--under-way",
    type=click.Choice([choice.value for choice in UnderWay]),
    default=UnderWay.REFUSE.value,
    show_default=True,
    help="What is running or being rolled back: refuse because of it, wait for its end, or leave it as it is.",
)
@click.option(
    "--timeout", type=Duration(), default="4m", show_default=True, help="How long to wait for what is under way."
)
@click.option("--deployment", metavar="NAME", help="The operator's: scaled down to 0. Else stop the operator yourself.")
@click.option(
    "--replicas", type=click.IntRange(min=0), default=1, show_default=True, help="To scale it up to again in a failure."
)
@click.option("--forget-records", is_flag=True, help="Delete plans, origins, runs and ledgers: no undo after that.")
def retire(
    namespaces: tuple[str, ...],
    own_namespace: str | None,
    *,
    under_way: str,
    timeout: int,
    deployment: str | None,
    replicas: int,
    forget_records: bool,
) -> None:
    """Let every resource go before the operator is removed.

    Looks whether anything is under way, stops the operator, takes its finalizer off all resources in the namespaces
    that it watches. The resources stay, and so do the records unless --forget-records is given. An operator that is
    installed later goes on from there.
    """
    order = Order(namespaces, UnderWay(under_way), timeout, deployment, replicas, forget_records)
    asyncio.run(_until_terminated(_retire(order, own_namespace)))


async def _until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """A Job that is stopped must not leave the operator stopped."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    for number in _ENDS:
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        raise Transient(Reason.INTERRUPTED, "stopped before it was done; the operator runs again") from None
    finally:
        for number in _ENDS:
            loop.remove_signal_handler(number)


async def _retire(order: Order, own_namespace: str | None) -> None:
    from kafka_rebalance.app.process import SystemClock

    async with connected(own_namespace) as kube:
        holder = LeaseHolder(kube, LEASE_NAME, f"retire-{secrets.token_hex(4)}", SystemClock())
        fence = Fence(holder.is_leader)
        fenced = KubeClient.connect(own_namespace, before_write=fence.check)
        try:
            await carry_out(order, kube, fenced, holder)
        finally:
            await fenced.close()


async def carry_out(order: Order, kube: KubeClient, fenced: KubeClient, holder: LeaseHolder) -> None:
    """All of it. ``fenced`` writes only while ``holder`` holds the lease."""
    looking = Retirement(kube, order.namespaces)
    remains = await _ready_to_go(order, looking)
    if order.under_way is UnderWay.LEAVE and await _leader(kube):
        await looking.order_let_go(remains.deleting, LET_GO_SECONDS)
    async with _stopped(order, kube, holder):
        remains = await looking.look()
        _judge(order, remains)  # begun between the look and the stop
        letting_go = Retirement(fenced, order.namespaces)
        await letting_go.let_go(remains.held)
        click.echo(
            f"let go of {len(remains.held)} of {len(remains.resources)} resources in {in_words(order.namespaces)}"
        )
        if order.forget:
            await _forget(letting_go, remains)
    with suppress(Forbidden):  # by hand, without that right: an empty lease stays, which hinders nobody
        await Installation(kube).remove_lease(LEASE_NAME)


async def _ready_to_go(order: Order, looking: Retirement) -> Remains:
    """Look, and where it is asked for, look until nothing is under way."""
    until = time.monotonic() + order.timeout_seconds
    told: tuple[str, ...] = ()
    while True:
        remains = await looking.look()
        left = until - time.monotonic()
        if order.under_way is not UnderWay.WAIT or not remains.under_way or left <= 0:
            _judge(order, remains)
            return remains
        if remains.under_way != told:
            click.echo(f"waiting: {'; '.join(remains.under_way)}", err=True)
            told = remains.under_way
        await asyncio.sleep(min(_LOOK_SECONDS, left))


def _judge(order: Order, remains: Remains) -> None:
    """Refused("UnderWay") unless the operator may go."""
    if not remains.under_way:
        return
    told = "; ".join(remains.under_way)
    if order.under_way is UnderWay.LEAVE:
        click.echo(
            f"left as it is: {told}. Kafka finishes what is in flight, under the throttle that is set; the next "
            "operator with these records goes on",
            err=True,
        )
        return
    raise Refused(
        Reason.UNDER_WAY,
        f"{told}. Wait for it or delete it, then try again; --under-way leave goes without. Nothing was changed",
    )


@asynccontextmanager
async def _stopped(order: Order, kube: KubeClient, holder: LeaseHolder) -> AsyncIterator[None]:
    """Within, no operator acts: its Deployment has no Pods, and its lease is ours. After a failure it runs again."""
    installation = Installation(kube)
    try:
        if order.deployment and not await installation.scale(order.deployment, 0):
            click.echo(f"there is no Deployment {kube.namespace}/{order.deployment}", err=True)
        await _take_over(kube, holder)
        keeping = asyncio.create_task(holder.keep())
        try:
            yield
        finally:
            keeping.cancel()
            await asyncio.gather(keeping, return_exceptions=True)
            await holder.release()
    except BaseException:
        if order.deployment:
            await installation.scale(order.deployment, order.replicas)
        raise


async def _take_over(kube: KubeClient, holder: LeaseHolder) -> None:
    """Wait until the operator has given up its lease. Permanent("OperatorRuns") names the one that has not."""
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await holder.acquire()
    except TimeoutError:
        who = await _leader(kube) or "somebody"
        raise Permanent(
            Reason.OPERATOR_RUNS,
            f"lease {kube.namespace}/{LEASE_NAME} is still held by {who} after {STOP_SECONDS} s: stop it",
        ) from None


async def _leader(kube: KubeClient) -> str:
    """Who holds the lease; empty: nobody."""
    lease = await kube.get_lease(LEASE_NAME)
    return (lease or {}).get("spec", {}).get("holderIdentity") or ""


async def _forget(letting_go: Retirement, remains: Remains) -> None:
    if remains.under_way:
        click.echo("records are kept: they are what leads back", err=True)
        return
    click.echo(f"deleted {await letting_go.forget()} records")
