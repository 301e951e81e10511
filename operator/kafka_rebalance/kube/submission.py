"""A KafkaRebalance that a command creates for a person, and its lists, in the person's namespace. Not for the operator.

Every step can be taken again: what an earlier attempt left when it was killed, or when its answer was lost, is found
and taken for what it is. Nothing that is there already is ever changed or deleted.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import GROUP, REBALANCES, VERSION, parse_rebalance, parse_spec
from kafka_rebalance.errors import Permanent, Refused
from kafka_rebalance.kube.api_errors import Conflict, DryRunsNotTaken
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.reasons import Reason


@dataclass(frozen=True, slots=True)
class Submitted:
    """``created`` False: it was there, asking the same. ``unasked``: why the API server was not asked before."""

    created: bool
    unasked: str = ""


async def submit(kube: KubeClient, rebalance: Mapping[str, Any], lists: Mapping[str, Any] | None = None) -> Submitted:
    """Have the KafkaRebalance there, and before it the ConfigMap with its lists.

    Refused("AlreadyThere") where another one has its name, or one that asks the same and has ended; "ConfigMapTaken";
    and what the API server refuses. It is asked before the ConfigMap is created. Where a webhook takes no dry runs that
    cannot be; a KafkaRebalance that is refused then leaves the ConfigMap behind, which is said, and which harms nobody:
    the other way round a KafkaRebalance could be left that carries out what somebody else writes under that name.
    Where an answer is lost (Transient) either may be there: the next attempt finds out.
    """
    if lists is None:
        return Submitted(await _create(kube, rebalance))
    unasked = ""
    try:
        there = not await _create(kube, rebalance, only_ask=True)
    except DryRunsNotTaken as unheard:
        unasked, there = unheard.message, await _is_there(kube, rebalance)
    await _put(kube, lists)
    try:
        return Submitted(not there and await _create(kube, rebalance), unasked)
    except (Refused, Permanent) as refused:
        if not unasked:
            raise
        left = f"ConfigMap {lists['metadata']['namespace']}/{lists['metadata']['name']}"
        told = f"it could not be asked before ({unasked}), so {left} is there, and serves again"
        raise Refused(refused.reason, f"{refused.message}; {told}") from refused


async def _create(kube: KubeClient, rebalance: Mapping[str, Any], *, only_ask: bool = False) -> bool:
    """False where it is there already."""
    path = f"/apis/{GROUP}/{VERSION}/namespaces/{quote(rebalance['metadata']['namespace'])}/{REBALANCES}"
    try:
        await kube.request("POST", f"{path}?fieldValidation=Strict{'&dryRun=All' if only_ask else ''}", rebalance)
    except Conflict:
        if await _is_there(kube, rebalance):
            return False
        if not only_ask:  # it came and went
            raise
    return True


async def _is_there(kube: KubeClient, wanted: Mapping[str, Any]) -> bool:
    """Whether a KafkaRebalance of this name asks for the same and goes on doing it. Refused where it does not."""
    namespace, name = wanted["metadata"]["namespace"], wanted["metadata"]["name"]
    body = await kube.get(REBALANCES, namespace, name)
    if body is None:
        return False
    who, other = f"KafkaRebalance {namespace}/{name}", "give another --name"
    if "deletionTimestamp" in body["metadata"]:
        raise Refused(Reason.ALREADY_THERE, f"{who} is being deleted: wait until it is gone, or {other}")
    try:
        found = parse_rebalance(body)
    except Refused as unreadable:
        raise Refused(
            Reason.ALREADY_THERE, f"{who} is there and cannot be read: {unreadable.message}; {other}"
        ) from unreadable
    if found.spec != parse_spec(wanted["spec"]):
        raise Refused(Reason.ALREADY_THERE, f"{who} is there and asks for something else: {other}")
    ready = find_condition(found.status.conditions, ConditionType.READY)
    if ready is not None and ready.status == "True" and ready.observed_generation == found.metadata.generation:
        raise Refused(
            Reason.ALREADY_THERE,
            f"{who} asks for the same and has ended ({ready.reason}): {other}, or delete it before",
        )
    return True


async def _put(kube: KubeClient, lists: Mapping[str, Any]) -> None:
    """Have the ConfigMap there; one with the same content is that one."""
    namespace, name = lists["metadata"]["namespace"], lists["metadata"]["name"]
    path, what = f"/api/v1/namespaces/{quote(namespace)}/configmaps", f"ConfigMap {namespace}/{name}"
    with suppress(Conflict):
        await kube.request("POST", f"{path}?fieldValidation=Strict", lists)
        return
    found = await kube.request("GET", f"{path}/{quote(name)}")
    if "deletionTimestamp" in found["metadata"]:
        raise Refused(
            Reason.CONFIG_MAP_TAKEN, f"{what} is being deleted: wait until it is gone, or give another --name"
        )
    if found.get("data") != lists["data"] or found.get("binaryData"):
        raise Refused(
            Reason.CONFIG_MAP_TAKEN, f"{what} is there and holds something else: delete it, or give another --name"
        )
