"""kafka-rebalance check-install: verifies the installation of the operator. ``helm test`` runs it in a Pod.

Asks the API server with the operator's service account: are the CRDs served, are the rights granted, would a resource
be accepted, and which operator leads. Creates nothing.
"""

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from kafka_rebalance.api.crd import definitions
from kafka_rebalance.api.v1alpha1 import API_VERSION, CONNECTIONS, GROUP, REASSIGNMENT_THROTTLES, REBALANCES
from kafka_rebalance.cli.exit_codes import EXIT_NO
from kafka_rebalance.cli.options.namespace_scope import in_words, watched_namespaces
from kafka_rebalance.cli.options.parsed_value import duration
from kafka_rebalance.cli.options.resource_lookup import connected
from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.kube.api_errors import DryRunUnsupported, Forbidden
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.installation import Installation
from kafka_rebalance.kube.lease import DURATION_SECONDS, LEASE_NAME
from kafka_rebalance.kube.rights import Right, needed

_SKEW = timedelta(minutes=1)
"""Tolerated difference between the clocks of two machines. The result is only printed."""
_PLURALS = (REBALANCES, REASSIGNMENT_THROTTLES, CONNECTIONS)
_SERVED = tuple(name for plural in _PLURALS for name in (plural, f"{plural}/status"))
_SAMPLE = {
    "apiVersion": API_VERSION,
    "kind": "KafkaRebalance",
    "metadata": {"generateName": "check-install-"},
    # A policy for approvals may refuse others.
    "spec": {"kafka": {"bootstrapServers": "kafka:9092"}, "approval": {"policy": "Manual"}},
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The result of one check. ``well`` None: not checked, which is not an error."""

    well: bool | None
    said: str

    def __str__(self) -> str:
        """One line of output."""
        return f"{'-' if self.well is None else 'ok' if self.well else 'FAIL':<6}{self.said}"


@click.command("check-install")
@watched_namespaces
@click.option("--own-namespace", help="Namespace of the operator's records. [default: the namespace of this Pod]")
@click.option("--reports", is_flag=True, help="The operator serves reports (--report-port), which needs more rights.")
@click.option("--timeout", type=duration(), default="0s", show_default=True, help="How long to wait for a leader.")
def check_install(namespaces: tuple[str, ...], *, own_namespace: str | None, reports: bool, timeout: int) -> None:
    """Verify the installation of the operator with its service account.

    Checks the CRDs, every right that the operator needs, a server-side dry run of a KafkaRebalance, and the leader
    lease. Exits with 4 if a check fails.
    """
    if not asyncio.run(_check(namespaces, own_namespace, timeout, reports=reports)):
        sys.exit(EXIT_NO)


async def _check(namespaces: Sequence[str], own_namespace: str | None, seconds: int, *, reports: bool) -> bool:
    """Print each result as it arrives. Returns whether all checks passed."""
    good = True
    async with connected(own_namespace) as kube:
        async for answer in answers(kube, namespaces, seconds, reports=reports):
            click.echo(str(answer))
            good = good and answer.well is not False
    return good


async def answers(
    kube: KubeClient, namespaces: Sequence[str], seconds: int = 0, *, reports: bool = False
) -> AsyncIterator[Answer]:
    """All checks, in the order in which one would fix them. ``seconds``: how long to wait for a leader."""
    installation = Installation(kube)
    yield await _served(installation)
    for plural in _PLURALS:
        yield await _same_definition(installation, plural)
    for answer in await _rights(
        kube, installation, needed(namespaces, kube.namespace, reports=reports), in_words(namespaces)
    ):
        yield answer
    yield await _dry_run(kube, installation)
    yield await _leader(kube, seconds)


async def _served(installation: Installation) -> Answer:
    served = await installation.served()
    if missing := [name for name in _SERVED if name not in served]:
        return Answer(False, f"{API_VERSION}: {', '.join(missing)} not served: are the CRDs installed?")
    return Answer(True, f"{API_VERSION}: {', '.join(_PLURALS[:-1])} and {_PLURALS[-1]} are served")


async def _same_definition(installation: Installation, plural: str) -> Answer:
    """An older CRD prunes fields that this operator writes; a newer one accepts fields that it cannot read."""
    name = f"{plural}.{GROUP}"
    try:
        stored = await installation.definition(plural)
    except Forbidden:
        return Answer(None, f"CRD {name}: not compared: this account may not read it")
    except RebalanceError as error:
        return Answer(False, f"CRD {name}: {error.message}")
    if stored["spec"]["versions"] != definitions()[name]["spec"]["versions"]:
        return Answer(False, f"CRD {name} differs from the one of this version: apply that one")
    return Answer(True, f"CRD {name} matches this version")


async def _rights(kube: KubeClient, installation: Installation, rights: Sequence[Right], watched: str) -> list[Answer]:
    allowed = await asyncio.gather(*map(installation.may, rights))
    missing = [right for right, may in zip(rights, allowed, strict=True) if not may]
    if missing:
        return [Answer(False, f"not allowed: {right}") for right in missing]
    scope = f"for {watched} and the records in {kube.namespace}"
    return [Answer(True, f"all {len(rights)} rights are granted, {scope}")]


async def _dry_run(kube: KubeClient, installation: Installation) -> Answer:
    what = f"a KafkaRebalance in namespace {kube.namespace} (server-side dry run)"
    try:
        await installation.dry_run(REBALANCES, _SAMPLE)
    except Forbidden:
        return Answer(None, f"{what}: not tried: this account may not create one")
    except DryRunUnsupported as unheard:
        return Answer(None, f"{what}: not tried: {unheard.message}")
    except RebalanceError as error:
        return Answer(False, f"{what}: {error.message}")
    return Answer(True, f"{what} is accepted")


async def _leader(kube: KubeClient, seconds: int) -> Answer:
    """The leader lease. During an upgrade there is no leader for a moment."""
    where = f"lease {kube.namespace}/{LEASE_NAME}"
    for left in range(seconds, -1, -1):
        spec = (await kube.get_lease(LEASE_NAME) or {}).get("spec") or {}
        holder, silent_since = spec.get("holderIdentity"), _silent_since(spec, datetime.now(UTC))
        if holder and not silent_since:
            return Answer(True, f"{where} is held by {holder}")
        await asyncio.sleep(1 if left else 0)
    if holder:
        said = f"{where} expired: {holder} last renewed it at {silent_since}; is the operator running?"
        return Answer(False, said)
    return Answer(False, f"{where} has no holder; is the operator running?")


def _silent_since(spec: Mapping[str, Any], now: datetime) -> str:
    """When an expired lease was last renewed (a killed operator leaves it behind); empty if it is valid."""
    renewed = spec.get("renewTime")
    if not renewed:
        return ""
    valid = timedelta(seconds=spec.get("leaseDurationSeconds") or DURATION_SECONDS)
    return str(renewed) if datetime.fromisoformat(renewed) + valid + _SKEW < now else ""
