"""The id that a cluster must have whose samples go into a lake: brokers may claim that of another cluster."""

from collections.abc import Callable
from typing import TypeVar

import click

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason

_Result = TypeVar("_Result")


def cluster_id_option(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``--cluster-id``; the command gets ``cluster_id``; None: any."""
    return click.option(
        "--cluster-id", metavar="ID", help="Store nothing if the brokers belong to another cluster. [default: any]"
    )(command)


def check_cluster(found: str, expected: str | None) -> None:
    """Permanent (OtherCluster) if the brokers claim another id."""
    if expected is not None and found != expected:
        message = f"the brokers belong to cluster {found}, not to {expected}: nothing was stored"
        raise Permanent(Reason.OTHER_CLUSTER, message)
