"""Carries a command of the pipeline out for several clusters. A cluster in trouble must not stop the others."""

from collections.abc import Callable, Sequence

import click

from kafka_rebalance.errors import RebalanceError, Refused
from kafka_rebalance.printable_text import printable


def each_cluster(
    clusters: Sequence[str],
    carry_out: Callable[[str], None],
    of: int = 0,
    *,
    begin: Callable[[str], None] = lambda _: None,
    end: Callable[[str], None] = lambda _: None,
    usable: Callable[[], bool] = lambda: True,
) -> list[str]:
    """The clusters for which it has failed; the reasons are on stderr.

    Any error counts: brokers may claim numbers with which Spark cannot compute, and the store may fail for some files.
    Passes on that of the only cluster. ``of``: how many clusters there are, if these are not all.

    ``begin`` is called before, and ``end`` after, also after an error; their errors are passed on: they are those of
    the store. ``usable`` is asked after an error. If it is False, nothing is begun with the other clusters, and they
    count as failed.
    """
    failed: list[str] = []
    for number, cluster_id in enumerate(clusters, 1):
        begin(cluster_id)
        try:
            carry_out(cluster_id)
        except BrokenPipeError:
            raise  # of our own output
        except Exception as error:
            if max(of, len(clusters)) == 1:
                raise
            failed.append(cluster_id)
            click.echo(printable(f"cluster {cluster_id}: {_why(error)}"), err=True)
            if not usable():
                others = clusters[number:]
                click.echo(f"Spark has ended: the other {len(others)} clusters are left for the next run", err=True)
                return [*failed, *others]
        end(cluster_id)
    return failed


def _why(error: Exception) -> str:
    if isinstance(error, OSError):
        from kafka_rebalance.storage.locations import store_failed

        error = store_failed("the lake cannot be used", error)  # the library's own text may contain keys
    if isinstance(error, RebalanceError):
        return f"{'refused' if isinstance(error, Refused) else 'failed'} ({error.reason}): {error.message}"
    return f"failed ({type(error).__name__}): {str(error).partition(chr(10))[0]}"
