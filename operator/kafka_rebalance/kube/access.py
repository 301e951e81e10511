"""Where the API server is and who we are there: a kubeconfig, or the account of the Pod. Sends nothing."""

from __future__ import annotations

import os
from pathlib import Path

import yaml
from kubernetes import client, config

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason


def configuration(kubeconfig: str | None = None) -> client.Configuration:
    """From the kubeconfig given, KUBECONFIG or ~/.kube/config; where there is none, as the Pod's account.

    Permanent("NoKubernetesAccess") names the file that cannot be used.
    """
    found = client.Configuration()
    default = Path.home() / ".kube" / "config"
    path = kubeconfig or os.environ.get("KUBECONFIG") or (str(default) if default.exists() else None)
    if not path:
        _use_account_of_pod(found)
        return found
    try:
        config.load_kube_config(path, client_configuration=found)  # type: ignore[no-untyped-call]
    except (config.ConfigException, yaml.YAMLError) as error:
        raise _unusable(path, " ".join(str(error).split())) from error
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # The client walks through what it has read without looking: YAML of anything else ends like this.
        raise _unusable(path, "it holds something else") from error
    return found


def _use_account_of_pod(found: client.Configuration) -> None:
    try:
        config.load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
    except config.ConfigException as error:
        told = f"KUBECONFIG names no file, there is no ~/.kube/config, and no account of a Pod: {error}"
        raise Permanent(Reason.NO_KUBERNETES_ACCESS, told) from error


def _unusable(path: str, why: str) -> Permanent:
    return Permanent(Reason.NO_KUBERNETES_ACCESS, f"the kubeconfig {path} cannot be used: {why}")
