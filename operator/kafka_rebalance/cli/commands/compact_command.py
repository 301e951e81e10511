"""kafka-rebalance pipeline compact: keeps a lake small.

First it deletes, for all clusters. Then it merges the files of one cluster after the other. The files of one may be so
many that the Job reaches its deadline, or such that it is killed. From then on, those of the others are merged first.
"""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from kafka_rebalance.cli.commands.each_cluster import each_cluster
from kafka_rebalance.cli.options.parsed_value import duration
from kafka_rebalance.cli.options.pipeline_extra import lake_store, require_extra
from kafka_rebalance.cli.options.spark_options import clusters_option
from kafka_rebalance.cli.tables.console import say
from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from kafka_rebalance.pipeline.lake_retention import Tidied


@click.command("compact")
@click.option("--lake", required=True, metavar="URI", help="Directory or URI with the samples.")
@clusters_option
@click.option(
    "--retention",
    type=duration(minimum=3600),
    default=None,
    help="Delete samples that are older, the steps of old runs, and unused load models. [default: none]",
)
@click.option(
    "--windows-retention",
    type=duration(minimum=3600),
    default=None,
    help="Delete stored windows that are older. [default: none]",
)
def compact(lake: str, clusters: tuple[str, ...], retention: int | None, windows_retention: int | None) -> None:
    """Merge the small files of a lake into large ones; delete old samples and windows, and what killed writers left."""
    require_extra("pyarrow")
    from kafka_rebalance.pipeline import lake_retention
    from kafka_rebalance.pipeline.job_turns import KeptPlaces
    from kafka_rebalance.pipeline.lake import Lake, chosen_clusters
    from kafka_rebalance.pipeline.lake_leftovers import sweep
    from kafka_rebalance.pipeline.windows_room import trim

    keep, keep_windows = (None if s is None else timedelta(seconds=s) for s in (retention, windows_retention))
    now = datetime.now(UTC)
    with lake_store(lake):
        opened = Lake.open(lake)
        kept = lake_retention.kept_clusters(opened)
        only_steps = not kept and bool(opened.names("steps"))
        chosen = kept if not clusters and (kept or only_steps) else chosen_clusters(lake, clusters)
        done: dict[str, Tidied] = {}

        def expire(cluster_id: str) -> None:
            deleted = lake_retention.expire(opened, cluster_id, now, keep, keep_windows)
            done[cluster_id] = lake_retention.Tidied(0, 0, deleted)

        failed = each_cluster(chosen, expire)
        runs = lake_retention.forget_runs(opened, now) if keep else 0
        models = lake_retention.forget_models(opened, now) if keep else 0
        left = sweep(opened, datetime.now(UTC))
        trimmed = trim(opened) if keep_windows and not clusters else 0
        turns = KeptPlaces(opened, "compact")

        def merge(cluster_id: str) -> None:
            found = done[cluster_id] + lake_retention.merge(opened, cluster_id, now)
            say(
                f"cluster {cluster_id}: merged {found.merged_files} files into {found.into}, "
                f"deleted {found.deleted_files}"
            )

        failed += each_cluster(turns.taken(done), merge, len(chosen), begin=turns.begin, end=turns.end)
        if keep:
            say(f"deleted the steps of {runs} runs, and the load models of {models} clusters")
        if trimmed:
            say(f"deleted the windows of {trimmed} hours, because the lake had too little of its volume left")
        say(f"deleted {left} files that killed writers had left")
    if failed:
        message = f"the files of {len(failed)} of {len(chosen)} clusters were not tidied: {', '.join(failed)}"
        raise Permanent(Reason.LAKE_UNUSABLE, message)
