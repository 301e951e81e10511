"""Finds the API server, the resource of a command and the operator's records of it, as kubectl does. Only reads."""

import functools
import shlex
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from kafka_rebalance.api.conditions import ConditionType
from kafka_rebalance.api.v1alpha1 import KINDS, REBALANCES
from kafka_rebalance.kube.access import current_namespace
from kafka_rebalance.kube.api_errors import NotFound
from kafka_rebalance.kube.client import DEFAULT_NAMESPACE, KubeClient
from kafka_rebalance.kube.directory_objects import DirectoryObjects
from kafka_rebalance.kube.objects import Json, KubeObjects
from kafka_rebalance.kube.record_files import RecordFiles

if TYPE_CHECKING:
    from kafka_rebalance.reconcile.state.record import Stores

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ApiServer:
    """``--kubeconfig`` and ``--context``; None: what kubectl would use. ``directory``: that of ``run`` instead."""

    kubeconfig: str | None = None
    context: str | None = None
    directory: Path | None = None

    @property
    def namespace(self) -> str:
        """The namespace of the context."""
        if self.directory is not None:
            return "default"
        return current_namespace(self.kubeconfig, self.context)


@dataclass(frozen=True, slots=True)
class ResourceScope:
    """Where the resources of a command are. ``records``: the operator's namespace; None: its default."""

    server: ApiServer
    namespace: str
    records: str | None = None

    @property
    def options(self) -> str:
        """The options with which a command finds the resource, for messages."""
        if self.server.directory is None:
            return f"-n {self.namespace}"
        return f"-n {self.namespace} --records {shlex.quote(str(self.server.directory))}"

    def follow(self, name: str) -> str:
        """The command to follow a change of the resource, for messages."""
        command = f"follow it with: kafka-rebalance watch {name} {self.options}"
        return command if self.server.directory is None else f"kafka-rebalance run carries it out; {command}"


def api_server_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``--kubeconfig`` and ``--context``; the command gets them as ``server``, an ApiServer."""

    @click.option("--kubeconfig", metavar="FILE", help="Kubeconfig file. [default: KUBECONFIG, then ~/.kube/config]")
    @click.option("--context", metavar="NAME", help="Context of the kubeconfig. [default: the current context]")
    @functools.wraps(command)
    def chosen(*arguments: object, kubeconfig: str | None, context: str | None, **options: object) -> _Result:
        return command(*arguments, server=ApiServer(kubeconfig, context), **options)

    return chosen


def namespace_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Also ``--namespace`` of the resource; the command gets ``scope``, a ResourceScope."""

    @api_server_options
    @click.option("-n", "--namespace", help="Namespace of the resource. [default: the namespace of the context]")
    @functools.wraps(command)
    def scoped(
        *arguments: object,
        server: ApiServer,
        namespace: str | None,
        operator_namespace: str | None = None,
        records: Path | None = None,
        **options: object,
    ) -> _Result:
        server = replace(server, directory=records)
        scope = ResourceScope(server, namespace or server.namespace, operator_namespace)
        return command(*arguments, scope=scope, **options)

    return scoped


def all_namespaces_option(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``-A``; the command gets it as ``all_namespaces``."""
    return click.option("-A", "--all-namespaces", is_flag=True, help="In all namespaces.")(command)


def record_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """Also ``--operator-namespace`` of the records."""
    return click.option(
        "--operator-namespace",
        metavar="NAMESPACE",
        help=f"Namespace of the operator's records. [default: {DEFAULT_NAMESPACE}; in a Pod, the Pod's]",
    )(namespace_options(command))


def directory_option(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``--records``, above the other options of a command."""
    return click.option(
        "--records",
        type=click.Path(file_okay=False, path_type=Path),
        help="Directory with the records of kafka-rebalance run, instead of the API server.",
    )(command)


def reading(scope: ResourceScope) -> AbstractAsyncContextManager[KubeObjects]:
    """The API server, or the directory of ``--records``. Refused("RecordsInvalid") if that has no records."""
    return _opened(scope, lambda directory: DirectoryObjects(RecordFiles.to_read(directory), lambda: datetime.now(UTC)))


def changing(scope: ResourceScope) -> AbstractAsyncContextManager[KubeObjects]:
    """As `reading`, and changes go to the API server, or to the run that uses the directory."""

    def client_of(directory: Path) -> DirectoryObjects:
        from kafka_rebalance.kube.directory_client import DirectoryClient

        return DirectoryClient(directory, lambda: datetime.now(UTC))

    return _opened(scope, client_of)


@asynccontextmanager
async def _opened(
    scope: ResourceScope, open_directory: Callable[[Path], DirectoryObjects]
) -> AsyncIterator[KubeObjects]:
    if scope.server.directory is None:
        async with connected(scope.records, scope.server) as client:
            yield client
        return
    kube = open_directory(scope.server.directory)
    try:
        yield kube
    finally:
        await kube.close()


@asynccontextmanager
async def connected(records: str | None = None, server: ApiServer = ApiServer()) -> AsyncIterator[KubeClient]:
    """The API server of the kubeconfig, or of the Pod; Permanent("NoKubernetesAccess") where there is neither."""
    kube = KubeClient.connect(records, kubeconfig=server.kubeconfig, context=server.context)
    try:
        yield kube
    finally:
        await kube.close()


async def find(kube: KubeObjects, namespace: str, name: str, plural: str = REBALANCES) -> Json:
    """The resource. NotFound where it does not exist."""
    body = await kube.get(plural, namespace, name)
    if body is None:
        raise NotFound(f"{KINDS[plural]} {namespace}/{name} not found")
    return body


def warn_if_ended(body: Json) -> None:
    """Of a KafkaRebalance whose settings are about to change: warns if no run can follow the change."""
    metadata, status = body["metadata"], body.get("status") or {}
    ready = next((c for c in status.get("conditions") or () if c["type"] == ConditionType.READY), None)
    edited = status.get("observedGeneration") != metadata.get("generation")
    if ready is not None and ready["status"] == "True" and not edited:
        what = f"KafkaRebalance {metadata['namespace']}/{metadata['name']}"
        text = f"warning: {what} has ended ({ready['reason']}): this applies only to an undo or to a new run"
        click.echo(text, err=True)


def stores(kube: KubeObjects) -> "Stores":
    """The operator's records."""
    from kafka_rebalance.kube.store import OriginStore, PlanStore, RunStore
    from kafka_rebalance.reconcile.state.record import Stores

    return Stores(PlanStore(kube), OriginStore(kube), RunStore(kube))
