"""kafka-rebalance retire: prepares the removal of an operator, so that no object keeps its finalizer.

``helm uninstall`` runs it in a Pod before anything is deleted. It changes nothing before it has checked that the
operator may be removed; after that, either it completes, or the operator is started again.
"""

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

from kafka_rebalance.cli.options.namespace_scope import in_words, watched_namespaces
from kafka_rebalance.cli.options.parsed_value import duration
from kafka_rebalance.cli.tables.phrases import counted
from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.kafka.fencing import Fence
from kafka_rebalance.kube.api_errors import Forbidden
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.installation import Installation
from kafka_rebalance.kube.lease import LEASE_NAME, LeaseHolder
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.retirement import Remains, Retirement

STOP_SECONDS = 120
"""How long to wait for the operator to stop: its grace period, and the lease of one that was killed."""
LET_GO_SECONDS = 15
"""How long the operator has to complete deletions without rollback: only it can close their runs."""
_LOOK_SECONDS = 2.0
_START_AGAIN_SECONDS = 60.0
"""How long to try to start the operator again after a failure."""
_ENDS = (signal.SIGTERM, signal.SIGINT)


class UnderWay(StrEnum):
    """What to do about running rebalances and rollbacks."""

    REFUSE = "refuse"
    WAIT = "wait"
    LEAVE = "leave"


@dataclass(frozen=True, slots=True)
class Order:
    """The options of the command line. ``namespaces`` empty: all. ``deployment``: to be scaled down."""

    namespaces: tuple[str, ...]
    under_way: UnderWay = UnderWay.REFUSE
    timeout_seconds: float = 0
    deployment: str | None = None
    replicas: int = 1
    forget: bool = False


@click.command("retire")
@watched_namespaces
@click.option("--own-namespace", help="Namespace of the operator's records. [default: the namespace of this Pod]")
@click.option(
    "--under-way",
    type=click.Choice([choice.value for choice in UnderWay]),
    default=UnderWay.REFUSE.value,
    show_default=True,
    help="While a rebalance or rollback is running: refuse, wait until it ends, or leave it as it is.",
)
@click.option(
    "--timeout", type=duration(), default="4m", show_default=True, help="How long to wait for running rebalances."
)
@click.option(
    "--deployment",
    metavar="NAME",
    help="Deployment of the operator, to scale down to 0. Without it, stop the operator yourself.",
)
@click.option(
    "--replicas",
    type=click.IntRange(min=0),
    default=1,
    show_default=True,
    help="Replicas to scale the Deployment up to after a failure.",
)
@click.option(
    "--forget-records", is_flag=True, help="Delete plans, origins, runs and ledgers. No undo is possible afterwards."
)
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
    """Prepare the removal of the operator.

    Checks that no rebalance is running, stops the operator, and removes its finalizer from all resources in the
    namespaces that it watches. The resources stay, and so do the records unless --forget-records is given. An operator
    that is installed later resumes from the records.
    """
    order = Order(namespaces, UnderWay(under_way), timeout, deployment, replicas, forget_records)
    kube = KubeClient.connect(own_namespace)  # importing the client takes long: a signal has to end it
    asyncio.run(_until_terminated(_retire(order, kube, own_namespace)))


async def _until_terminated(work: Coroutine[Any, Any, None]) -> None:
    """Handle signals: a Job that is stopped must not leave the operator stopped."""
    task, loop = asyncio.ensure_future(work), asyncio.get_running_loop()
    for number in _ENDS:
        loop.add_signal_handler(number, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        raise Transient(Reason.INTERRUPTED, "the command was interrupted") from None
    finally:
        for number in _ENDS:
            loop.remove_signal_handler(number)


async def _retire(order: Order, kube: KubeClient, own_namespace: str | None) -> None:
    from kafka_rebalance.app.system_clock import SystemClock

    holder = LeaseHolder(kube, LEASE_NAME, f"retire-{secrets.token_hex(4)}", SystemClock())
    fence = Fence(holder.is_leader)
    fenced = KubeClient.connect(own_namespace, before_write=fence.check)
    try:
        await carry_out(order, kube, fenced, holder)
    finally:
        await fenced.close()
        await kube.close()


async def carry_out(order: Order, kube: KubeClient, fenced: KubeClient, holder: LeaseHolder) -> None:
    """Carry out the order. ``fenced`` writes only while ``holder`` holds the lease."""
    looking = Retirement(kube, order.namespaces)
    remains = await _ready_to_go(order, looking, kube)
    if order.under_way is UnderWay.LEAVE and await _leader(kube):
        await looking.order_let_go(remains.deleting, LET_GO_SECONDS)
    async with _stopped(order, kube, holder):
        remains = await looking.look()
        _judge(order, remains)  # may have started before the operator stopped
        letting_go = Retirement(fenced, order.namespaces)
        await letting_go.let_go(remains.held)
        held, of = len(remains.held), len(remains.resources)
        click.echo(f"removed the finalizer from {held} of {of} resources in {in_words(order.namespaces)}")
        if order.forget:
            await _forget(letting_go, remains)
    with suppress(Forbidden):  # run by a person without that right: an empty lease is harmless
        await Installation(kube).remove_lease(LEASE_NAME)


async def _ready_to_go(order: Order, looking: Retirement, kube: KubeClient) -> Remains:
    """Read the resources; with --under-way wait, until no rebalance is running."""
    until = time.monotonic() + order.timeout_seconds
    warned = False
    reported: tuple[str, ...] = ()
    while True:
        remains = await looking.look()
        if remains.under_way and not warned:
            await _warn_if_stopped(order, kube)
            warned = True
        left = until - time.monotonic()
        if order.under_way is not UnderWay.WAIT or not remains.under_way or left <= 0:
            _judge(order, remains)
            return remains
        if remains.under_way != reported:
            click.echo(f"waiting: {'; '.join(remains.under_way)}", err=True)
            reported = remains.under_way
        await asyncio.sleep(min(_LOOK_SECONDS, left))


async def _warn_if_stopped(order: Order, kube: KubeClient) -> None:
    """Say so if no operator ends what is under way: an earlier ``retire`` may have been killed after it stopped it."""
    if not order.deployment:
        return
    with suppress(RebalanceError):  # what is under way is refused all the same
        if await Installation(kube).replicas(order.deployment) == 0:
            start = _start_by_hand(kube.namespace, order.deployment, order.replicas)
            name = f"{kube.namespace}/{order.deployment}"
            click.echo(f"Deployment {name} has no replicas. To start it: {start}", err=True)


def _judge(order: Order, remains: Remains) -> None:
    """Refused("UnderWay") unless the operator may be removed."""
    if not remains.under_way:
        return
    running = "; ".join(remains.under_way)
    if order.under_way is UnderWay.LEAVE:
        click.echo(
            f"left as is: {running}. Kafka completes reassignments in flight, under the throttle that is set; the next "
            "operator with these records resumes",
            err=True,
        )
        return
    raise Refused(
        Reason.UNDER_WAY,
        f"{running}. Wait for it or delete it, then retry; or use --under-way leave. Nothing was changed",
    )


@asynccontextmanager
async def _stopped(order: Order, kube: KubeClient, holder: LeaseHolder) -> AsyncIterator[None]:
    """Within, no operator runs: its Deployment has no Pods, and its lease is ours. A failure starts it again."""
    installation = Installation(kube)
    try:
        if order.deployment and not await installation.scale(order.deployment, 0):
            click.echo(f"Deployment {kube.namespace}/{order.deployment} not found", err=True)
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
            await _start_again(installation, kube.namespace, order.deployment, order.replicas)
        raise


async def _start_again(installation: Installation, namespace: str, deployment: str, replicas: int) -> None:
    """Scale the Deployment up. If the API server does not answer, which may be why the command failed, try again."""
    until, told = time.monotonic() + _START_AGAIN_SECONDS, False
    while True:
        try:
            found = await installation.scale(deployment, replicas)
        except RebalanceError as error:
            if not told:
                start = _start_by_hand(namespace, deployment, replicas)
                click.echo(f"the operator is not started again yet ({error.message}). By hand: {start}", err=True)
                told = True
            if not isinstance(error, Transient) or time.monotonic() >= until:
                return
            await asyncio.sleep(_LOOK_SECONDS)
        else:
            if found:
                click.echo(f"Deployment {namespace}/{deployment} has {counted(replicas, 'replica')} again", err=True)
            return


def _start_by_hand(namespace: str, deployment: str, replicas: int) -> str:
    return f"kubectl scale -n {namespace} deployment/{deployment} --replicas={replicas}"


async def _take_over(kube: KubeClient, holder: LeaseHolder) -> None:
    """Wait until the operator releases its lease. Permanent("OperatorRuns") names one that does not."""
    if who := await _leader(kube):
        lease = f"lease {kube.namespace}/{LEASE_NAME}"
        click.echo(f"waiting until {who} has released {lease}, at most {STOP_SECONDS} s", err=True)
    try:
        async with asyncio.timeout(STOP_SECONDS):
            await holder.acquire()
    except TimeoutError:
        who = await _leader(kube) or "another operator"
        raise Permanent(
            Reason.OPERATOR_RUNS,
            f"lease {kube.namespace}/{LEASE_NAME} is still held by {who} after {STOP_SECONDS} s: stop it",
        ) from None


async def _leader(kube: KubeClient) -> str:
    """The holder of the lease; empty: none."""
    lease = await kube.get_lease(LEASE_NAME)
    return (lease or {}).get("spec", {}).get("holderIdentity") or ""


async def _forget(letting_go: Retirement, remains: Remains) -> None:
    if remains.under_way:
        click.echo("records are kept: the rollback needs them", err=True)
        return
    click.echo(f"deleted {await letting_go.forget()} records")
