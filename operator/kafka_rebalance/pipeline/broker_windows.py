"""From the windows of partitions to those of brokers, as Spark column expressions.

In each window, what the partitions of a broker carry is added up, and the quantiles are of these sums: partitions whose
peaks are at different times do not add up to a peak. Partitions count where they are in the newest sample. A window of
a broker counts only if it is known of each of its partitions; a sum of the others would be too low. Nothing here starts
Spark, opens files or runs Python per row; all it shuffles is one row per task, broker and window.
"""

from collections.abc import Callable

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - its name everywhere

from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.pipeline.partition_loads import ADDENDS

_DECIMALS = 3
_P95 = 0.95
_ADDENDS = f"array<struct<w bigint, {', '.join(f'{name} {kind}' for name, kind in ADDENDS.items())}>>"


def broker_windows(estimated: DataFrame, brokers: DataFrame, windows: int) -> DataFrame:
    """One row per ``broker`` with a struct for each `LoadResource`.

    ``estimated`` has the partitions (`partition_loads.estimates`); ``brokers``: all that are known, also without
    replicas. ``windows``: how many windows there are, known or not.

    Of a resource: ``mean``, ``p95`` and ``max`` of its ``windows`` that are known of all its ``partitions`` (null: none
    is), and ``known``, the most partitions that are known in one window.
    """
    sums = (
        _replicas(estimated)
        .unionByName(_without_replicas(brokers))
        .groupBy("broker", "w")
        .agg(
            F.sum("held").alias("replicas"),
            F.sum(F.when(F.col("leads"), F.col("held"))).alias("leaders"),
            *_sum("in", F.col("rate")),
            *_sum("led", F.when(F.col("leads"), F.col("rate"))),
            *_sum("fetched", F.when(F.col("leads"), F.col("rate") * F.col("followers"))),
            *_sum("out", F.when(F.col("leads"), F.col("out"))),
            *_sum("size", F.col("size")),
        )
    )
    of_window = F.struct(
        *(f"{kind}_{name}" for name in ("in", "led", "fetched", "out", "size") for kind in ("known", "sum"))
    )
    found = sums.groupBy("broker").agg(
        F.collect_list(F.when(F.col("w").isNotNull(), of_window)).alias("found"),
        *(
            F.coalesce(F.max(F.when(F.col("w").isNull(), F.col(of))), F.lit(0)).alias(of)
            for of in ("replicas", "leaders")
        ),
    )
    return found.select("broker", *(_statistics(resource, windows) for resource in LoadResource))


def _replicas(estimated: DataFrame) -> DataFrame:
    """A row per replica and window, and one without window (``w`` is null) per replica, by which they are counted."""
    itself = F.array(F.struct(F.lit(None), *(F.lit(None) for _ in ADDENDS))).cast(_ADDENDS)
    return (
        estimated.select(
            F.explode("brokers").alias("broker"),
            "leader",
            (F.size("brokers") - 1).alias("followers"),
            F.concat(itself, F.coalesce("windows_in", F.array().cast(_ADDENDS))).alias("windows_in"),
            F.coalesce("windows_out", F.array().cast(_ADDENDS)).alias("windows_out"),
        )
        .withColumn("leads", F.coalesce(F.col("broker") == F.col("leader"), F.lit(False)))
        .select(
            "broker",
            "leads",
            "followers",
            F.explode(F.when(F.col("leads"), F.concat("windows_in", "windows_out")).otherwise(F.col("windows_in"))),
        )
        .select("broker", "leads", "followers", F.lit(1).alias("held"), "col.*")
    )


def _without_replicas(brokers: DataFrame) -> DataFrame:
    """A row for each broker that counts nothing."""
    none = {"w": "bigint"} | ADDENDS
    return brokers.select(
        "broker",
        F.lit(False).alias("leads"),
        F.lit(0).alias("followers"),
        F.lit(0).alias("held"),
        *(F.lit(None).cast(kind).alias(name) for name, kind in none.items()),
    )


def _sum(name: str, value: Column) -> tuple[Column, Column]:
    return F.count(value).alias(f"known_{name}"), F.sum(value).alias(f"sum_{name}")


def _statistics(resource: LoadResource, windows: int) -> Column:
    """The struct of one resource. Without partitions a broker carries 0, in all windows."""
    counted, known, carried = _PARTS[resource]
    complete = F.filter("found", lambda window: known(window) == F.col(counted))
    zeros = F.array_repeat(F.lit(0.0), windows)
    sums = F.array_sort(F.when(F.col(counted) == 0, zeros).otherwise(F.transform(complete, carried)))
    count = F.size(sums)
    some = count > 0
    total = F.aggregate(sums, F.lit(0.0), lambda total, one: total + one)
    figures = {
        "mean": total / count,
        "p95": F.element_at(sums, F.ceil(count * F.lit(_P95)).cast("int")),
        "max": F.array_max(sums),
    }
    return F.struct(
        *(F.when(some, F.round(figure, _DECIMALS)).alias(name) for name, figure in figures.items()),
        count.alias("windows"),
        F.col(counted).cast("int").alias("partitions"),
        F.coalesce(F.array_max(F.transform("found", known)), F.lit(0)).cast("int").alias("known"),
    ).alias(resource.value)


def _sent_known(window: Column) -> Column:
    return F.least(window["known_led"], window["known_out"])


_PARTS: dict[LoadResource, tuple[str, Callable[[Column], Column], Callable[[Column], Column]]] = {
    LoadResource.DISK: ("replicas", lambda window: window["known_size"], lambda window: window["sum_size"]),
    LoadResource.BYTES_IN: ("replicas", lambda window: window["known_in"], lambda window: window["sum_in"]),
    LoadResource.LEADER_BYTES_IN: ("leaders", lambda window: window["known_led"], lambda window: window["sum_led"]),
    LoadResource.BYTES_OUT: ("leaders", _sent_known, lambda window: window["sum_out"] + window["sum_fetched"]),
}
"""Which partitions count, how many of them are known in a window, and what these carry."""
