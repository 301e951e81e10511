"""Carries a command of the pipeline out for several clusters. A cluster in trouble must not stop the others."""

from collections.abc import Callable, Sequence

import click

from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.printable_text import printable


def each_cluster(clusters: Sequence[str], carry_out: Callable[[str], None], of: int = 0) -> list[str]:
    """The clusters for which it has failed; the reasons are on stderr.

    Any error counts: brokers may claim numbers with which Spark cannot compute. Passes on errors of the store, and that
    of the only cluster. ``of``: how many clusters there are, if these are not all.
    """
    failed: list[str] = []
    for cluster_id in clusters:
        try:
            carry_out(cluster_id)
        except Exception as error:
            of_the_store = isinstance(error, OSError) or (
                isinstance(error, RebalanceError) and not isinstance(error, Refused)
            )
            if of_the_store or max(of, len(clusters)) == 1:
                raise
            failed.append(cluster_id)
            click.echo(printable(f"cluster {cluster_id}: {_why(error)}"), err=True)
    return failed


def _why(error: Exception) -> str:
    if isinstance(error, Refused):
        return f"refused ({error.reason}): {error.message}"
    return f"failed ({type(error).__name__}): {str(error).partition(chr(10))[0]}"
