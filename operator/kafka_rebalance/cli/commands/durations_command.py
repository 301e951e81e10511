"""kafka-rebalance pipeline history: learns with Spark how long runs take, from those that have ended.

Servers may claim any number of cluster ids, and the Job has a deadline: it begins with the cluster with which it began
longest ago.
"""

from functools import partial
from typing import TYPE_CHECKING

import click

from kafka_rebalance.cli.commands.each_cluster import each_cluster
from kafka_rebalance.cli.options.spark_options import check_spark, clusters_option, master_option
from kafka_rebalance.errors import Refused
from kafka_rebalance.printable_text import printable
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_rate

if TYPE_CHECKING:
    from kafka_rebalance.model.duration_model import DurationModel


@click.command("history")
@click.option("--lake", required=True, metavar="URI", help="Lake with the steps of ended runs (operator --history).")
@clusters_option
@master_option
@click.option("--allow-too-few", is_flag=True, help="Do not fail while there are too few runs: for a daily Job.")
def history(lake: str, clusters: tuple[str, ...], master: str | None, *, allow_too_few: bool) -> None:
    """Learn from ended runs how long a run takes, for `plan --durations`."""
    check_spark(master)
    from kafka_rebalance.pipeline.duration_fit import FEWEST_RUNS, learn
    from kafka_rebalance.pipeline.job_turns import JobTurns
    from kafka_rebalance.pipeline.lake import Lake
    from kafka_rebalance.pipeline.run_steps import clusters_with_runs, enough_since, past_runs, run_files
    from kafka_rebalance.pipeline.spark_session import answers, spark_session
    from kafka_rebalance.storage.locations import hadoop_settings, path_segment, store_failed

    try:
        opened = Lake.open(lake)
        chosen = list(clusters) or clusters_with_runs(opened)
        if not chosen:
            none = Refused(Reason.NO_HISTORY, "the lake has no ended runs: run the operator with --history")
            if not allow_too_few:
                raise none
            click.echo(f"refused ({none.reason}): {none.message}", err=True)
            return
        enough: list[str] = []
        refused: list[str] = []

        def refuse(cluster_id: str, error: Refused) -> None:
            refused.append(cluster_id)
            click.echo(printable(f"cluster {cluster_id}: refused ({error.reason}): {error.message}"), err=True)

        def count(cluster_id: str) -> None:
            recorded = len(run_files(opened, cluster_id))
            if recorded >= FEWEST_RUNS:
                enough.append(cluster_id)
                return
            why = f"{recorded} runs are on record, {FEWEST_RUNS} are needed"
            refuse(cluster_id, Refused(Reason.NO_HISTORY, why))

        failed = each_cluster(chosen, count)
        turns = JobTurns(opened, "history", enough_since)
        with spark_session(master) as spark:
            for name, value in hadoop_settings(lake).items():
                spark.conf.set(name, value)

            def learned(cluster_id: str) -> None:
                try:
                    runs, looked_at = past_runs(spark, opened, cluster_id)
                    model = learn(cluster_id, runs)
                except Refused as error:
                    refuse(cluster_id, error)
                    return
                path = f"models/{path_segment(cluster_id)}/durations.json"
                opened.write(path, model.to_json())
                click.echo(printable(f"cluster {cluster_id}: {_sentence(model, looked_at)} -> {path}"))

            ordered, usable = turns.in_order(enough), partial(answers, spark)
            failed += each_cluster(ordered, learned, len(chosen), begin=turns.begin, usable=usable)
    except OSError as error:
        raise store_failed("the lake cannot be used", error) from error
    without = len(failed) + (0 if allow_too_few else len(refused))
    if without:
        raise Refused(Reason.NO_HISTORY, f"no durations for {without} of {len(chosen)} clusters; see above")


def _sentence(model: "DurationModel", looked_at: int) -> str:
    efficiency = f"{model.efficiency:.0%} of the throttle" if model.efficiency is not None else "no throttled runs"
    capacity = f"{format_rate(model.capacity)} without one" if model.capacity is not None else "none without one"
    return (
        f"{model.runs} of {looked_at} runs; {efficiency}, {capacity}, {model.overhead_seconds:.1f} s for each step and "
        f"{model.fixed_seconds:.1f} s for each run; median error {model.median_error:.0%}, eight of ten between "
        f"{model.low:.2f} and {model.high:.2f} of the prediction"
    )
