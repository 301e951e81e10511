"""Objects that a command creates for a person, in the person's namespace. Not for the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from kafka_rebalance.api.v1alpha1 import GROUP, REBALANCES, VERSION
from kafka_rebalance.errors import RebalanceError, Transient
from kafka_rebalance.kube.client import KubeClient
from kafka_rebalance.kube.errors import Conflict

_PATHS = {"ConfigMap": ("/api/v1", "configmaps"), "KafkaRebalance": (f"/apis/{GROUP}/{VERSION}", REBALANCES)}


async def submit(kube: KubeClient, manifests: Sequence[Mapping[str, Any]]) -> None:
    """Create them in this order, or none. Conflict where one exists already; Refused where one is invalid.

    Where the answer is lost (any other Transient) the last may exist, so those before it stay.
    """
    created: list[str] = []
    try:
        for body in manifests:
            path = _path(body)
            await kube.request("POST", f"{path}?fieldValidation=Strict", body)
            created.append(f"{path}/{quote(body['metadata']['name'])}")
    except RebalanceError as failed:
        if isinstance(failed, Conflict) or not isinstance(failed, Transient):
            for path in reversed(created):
                await kube.request("DELETE", path)
        raise


def _path(body: Mapping[str, Any]) -> str:
    group, plural = _PATHS[body["kind"]]
    return f"{group}/namespaces/{quote(body['metadata']['namespace'])}/{plural}"
