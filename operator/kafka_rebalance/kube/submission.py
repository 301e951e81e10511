"""Creates a KafkaRebalance and the ConfigMap with its lists, for commands. Not used by the operator.

Every step can be repeated: objects from an earlier attempt that was killed, or whose answer was lost, are recognised.
Existing objects are never changed or deleted.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import GROUP, REBALANCES, VERSION, parse_rebalance, parse_spec
from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.kube.api_errors import Conflict, DryRunUnsupported
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Submitted:
    """``created`` False: it existed with the same spec. ``no_dry_run``: why there was no dry run; else empty."""

    created: bool
    no_dry_run: str = ""


async def submit(kube: KubeClient, rebalance: Mapping[str, Any], lists: Mapping[str, Any] | None = None) -> Submitted:
    """Create the ConfigMap with the lists, then the KafkaRebalance.

    Refused("AlreadyThere") if another KafkaRebalance has the name, or one with the same spec has ended;
    Refused("ConfigMapTaken"); and any refusal of the API server. A dry run detects a refusal before the ConfigMap is
    created. If a webhook does not support dry runs, a refused KafkaRebalance leaves the ConfigMap behind, and the error
    says so. The other order would be worse: it could leave a KafkaRebalance that executes any ConfigMap that somebody
    creates later under that name. After a lost answer (Transient) either may exist: the next attempt finds out.
    """
    if lists is None:
        return Submitted(await _create(kube, rebalance))
    no_dry_run = ""
    try:
        exists = not await _create(kube, rebalance, dry_run=True)
    except DryRunUnsupported as unsupported:
        no_dry_run, exists = unsupported.message, await _exists(kube, rebalance)
    await _put(kube, lists)
    try:
        return Submitted(not exists and await _create(kube, rebalance), no_dry_run)
    except (Refused, Permanent) as refused:
        if not no_dry_run:
            raise
        left = f"ConfigMap {lists['metadata']['namespace']}/{lists['metadata']['name']}"
        note = f"{left} was created before, since no dry run was possible ({no_dry_run}); the next attempt uses it"
        raise Refused(refused.reason, f"{refused.message}; {note}") from refused


async def _create(kube: KubeClient, rebalance: Mapping[str, Any], *, dry_run: bool = False) -> bool:
    """False if it already exists."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{quote(rebalance['metadata']['namespace'])}/{REBALANCES}"
    try:
        await kube.request("POST", f"{path}?fieldValidation=Strict{'&dryRun=All' if dry_run else ''}", rebalance)
    except Conflict:
        if await _exists(kube, rebalance):
            return False
        if not dry_run:  # it was deleted meanwhile
            raise
    return True


async def _exists(kube: KubeClient, wanted: Mapping[str, Any]) -> bool:
    """Whether a KafkaRebalance of this name exists with the same spec and has not ended. Refused for any other."""
    namespace, name = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
    body = await kube.get(REBALANCES, namespace, name)
    if body is None:
        return False
    what, other = f"KafkaRebalance {namespace}/{name}", "use another --name"
    if "deletionTimestamp" in body["metadata"]:
        raise Refused(Reason.ALREADY_THERE, f"{what} is being deleted: wait until it is gone, or {other}")
    try:
        found = parse_rebalance(body)
    except Refused as unreadable:
        raise Refused(
            Reason.ALREADY_THERE, f"{what} exists and cannot be read: {unreadable.message}; {other}"
        ) from unreadable
    if found.spec != parse_spec(wanted["spec"]):
        raise Refused(Reason.ALREADY_THERE, f"{what} exists with another spec: {other}")
    ready = find_condition(found.status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "True" and ready.observed_generation == found.metadata.generation:
        raise Refused(
            Reason.ALREADY_THERE,
            f"{what} exists with the same spec and has ended ({ready.reason}): delete it first, or {other}",
        )
    return True


async def _put(kube: KubeClient, lists: Mapping[str, Any]) -> None:
    """Create the ConfigMap; one with the same content is used as it is."""
    namespace, name = lists["metadata"]["namespace"], lists["metadata"]["name"]
    path, what = f"/api/v1/namespaces/{quote(namespace)}/configmaps", f"ConfigMap {namespace}/{name}"
    with suppress(Conflict):
        await kube.request("POST", f"{path}?fieldValidation=Strict", lists)
        return
    found = await kube.request("GET", f"{path}/{quote(name)}")
    if "deletionTimestamp" in found["metadata"]:
        raise Refused(Reason.CONFIG_MAP_TAKEN, f"{what} is being deleted: wait until it is gone, or use another --name")
    if found.get("data") != lists["data"] or found.get("binaryData"):
        raise Refused(Reason.CONFIG_MAP_TAKEN, f"{what} exists with other content: delete it, or use another --name")
