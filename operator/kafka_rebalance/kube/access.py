"""Address and credentials of the API server: from a kubeconfig or the Pod's service account. Sends nothing."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from kafka_rebalance.errors import Permanent
from kafka_rebalance.model.bulk import without_collector
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from kubernetes import client


_IN_CLUSTER_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


def namespace_of_pod() -> str | None:
    """The namespace of the Pod that this process runs in; None outside of Kubernetes."""
    if not _IN_CLUSTER_NAMESPACE.exists():
        return None
    return _IN_CLUSTER_NAMESPACE.read_text(encoding="utf-8").strip()


def current_namespace(kubeconfig: str | None = None, context: str | None = None) -> str:
    """The namespace that kubectl would use: that of the context, without a kubeconfig that of the Pod, or ``default``.

    A file that cannot be read counts as empty here: ``configuration`` says what is wrong with it.
    """
    path = _path(kubeconfig)
    if path is None:
        return namespace_of_pod() or "default"
    files = [found for found in map(_read, path.split(os.pathsep)) if found]
    current = context or next((found["current-context"] for found in files if found.get("current-context")), None)
    for named in (row for found in files for row in _rows(found.get("contexts"))):
        if named.get("name") == current:
            return str((named.get("context") or {}).get("namespace") or "default")
    return "default"


def _read(path: str) -> dict[str, Any]:
    try:
        found = yaml.safe_load(Path(path).expanduser().read_bytes())
    except (OSError, yaml.YAMLError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _rows(contexts: Any) -> Iterator[dict[str, Any]]:
    return (row for row in contexts if isinstance(row, dict)) if isinstance(contexts, list) else iter(())


def _path(kubeconfig: str | None) -> str | None:
    default = Path.home() / ".kube" / "config"
    return kubeconfig or os.environ.get("KUBECONFIG") or (str(default) if default.exists() else None)


def configuration(kubeconfig: str | None = None, context: str | None = None) -> "client.Configuration":
    """From ``kubeconfig``, KUBECONFIG or ~/.kube/config; without any of them, from the Pod's service account.

    ``context``: another one than the current context. Permanent("NoKubernetesAccess") names the file that cannot be
    used.
    """
    with without_collector():
        from kubernetes import client, config

    found = client.Configuration()
    path = _path(kubeconfig)
    if not path:
        if context is not None:
            raise Permanent(
                Reason.NO_KUBERNETES_ACCESS, f"there is no kubeconfig, so no context {context}: give --kubeconfig"
            )
        _use_account_of_pod(found)
        return found
    if not any(Path(part).expanduser().exists() for part in path.split(os.pathsep)):
        raise _unusable(path, "there is no such file")
    try:
        config.load_kube_config(path, context=context, client_configuration=found)  # type: ignore[no-untyped-call]
    except (config.ConfigException, yaml.YAMLError) as error:
        raise _unusable(path, " ".join(str(error).split())) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The client does not validate what it reads: other YAML fails like this.
        raise _unusable(path, "it is not a kubeconfig") from error
    return found


def _use_account_of_pod(found: "client.Configuration") -> None:
    from kubernetes import config

    try:
        config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
    except config.ConfigException as error:
        message = f"KUBECONFIG is not set, there is no ~/.kube/config and no service account of a Pod: {error}"
        raise Permanent(Reason.NO_KUBERNETES_ACCESS, message) from error


def _unusable(path: str, why: str) -> Permanent:
    message = (
        f"the kubeconfig {path} cannot be used: {why}. Set KUBECONFIG to a file that kubectl can use, or give "
        "--kubeconfig and --context"
    )
    return Permanent(Reason.NO_KUBERNETES_ACCESS, message)
