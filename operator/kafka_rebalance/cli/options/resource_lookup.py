"""Finds the KafkaRebalance of a command and the operator's records of it. Only reads."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import click

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.client import DEFAULT_NAMESPACE, Json, KubeClient
from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
from kafka_rebalance.reconcile.state.record import Stores

_Command = TypeVar("_Command", bound=Callable[..., Any])


def namespace_options(command: _Command) -> _Command:
    """``--namespace`` of the resource and ``--operator-namespace`` of the records."""
    command = click.option(
        "--operator-namespace",
        metavar="NAMESPACE",
        help=f"Namespace of the operator's records. [default: {DEFAULT_NAMESPACE}; in a Pod, the Pod's]",
    )(command)
    return click.option("-n", "--namespace", default="default", show_default=True, help="Namespace of the resource.")(
        command
    )


@asynccontextmanager
async def connected(operator_namespace: str | None) -> AsyncIterator[KubeClient]:
    """The API server of the kubeconfig, or of the Pod; Permanent("NoKubernetesAccess") where there is neither."""
    kube = KubeClient.connect(operator_namespace)
    try:
        yield kube
    finally:
        await kube.close()


async def find(kube: KubeClient, namespace: str, name: str) -> Json:
    """The resource. NotFound where it does not exist."""
    body = await kube.get(REBALANCES, namespace, name)
    if body is None:
        raise NotFound(f"KafkaRebalance {namespace}/{name} not found")
    return body


def stores(kube: KubeClient) -> Stores:
    """The operator's records."""
    return Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
