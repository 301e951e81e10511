"""The options that several commands of the pipeline share: which clusters, and where Spark runs."""

from collections.abc import Callable
from typing import TypeVar

import click

from kafka_rebalance.cli.options.pipeline_extra import require_extra

_Result = TypeVar("_Result")


def clusters_option(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``--cluster``; the command gets ``clusters``, a tuple of ids; empty: all."""
    return click.option(
        "--cluster", "clusters", multiple=True, metavar="ID", help="Only this cluster id. May be repeated."
    )(command)


def master_option(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``--master``; None: Spark's own default."""
    return click.option(
        "--master", metavar="URL", help="Spark master. [default: that of spark-submit, else this machine]"
    )(command)


def spark_options(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``--master`` and ``--remote``; see `check_spark`."""
    remote = click.option("--remote", metavar="URL", help="A Spark Connect server, such as sc://host:15002.")
    return master_option(remote(command))


def check_spark(master: str | None, remote: str | None = None) -> None:
    """Check these options, and that the libraries for them are installed."""
    if master and remote:
        raise click.UsageError("a Spark Connect server has its own master: use --master or --remote")
    require_extra("pyarrow")
    require_extra("pyspark")
    if remote:
        require_extra("grpc_status")
