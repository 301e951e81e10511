"""Address and credentials of the API server: from a kubeconfig or the Pod's service account. Sends nothing."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from kubernetes import client


def configuration(kubeconfig: str | None = None) -> "client.Configuration":
    """From ``kubeconfig``, KUBECONFIG or ~/.kube/config; without any of them, from the Pod's service account.

    Permanent("NoKubernetesAccess") names the file that cannot be used.
    """
    from kubernetes import client, config

    found = client.Configuration()
    default = Path.home() / ".kube" / "config"
    path = kubeconfig or os.environ.get("KUBECONFIG") or (str(default) if default.exists() else None)
    if not path:
        _use_account_of_pod(found)
        return found
    if not any(Path(part).expanduser().exists() for part in path.split(os.pathsep)):
        raise _unusable(path, "there is no such file")
    try:
        config.load_kube_config(path, client_configuration=found)  # type: ignore[no-untyped-call]
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
    message = f"the kubeconfig {path} cannot be used: {why}. Set KUBECONFIG to a file that kubectl can use"
    return Permanent(Reason.NO_KUBERNETES_ACCESS, message)
