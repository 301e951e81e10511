"""What consumer groups read between samples, when groups come and go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from tests.pipeline.clusters_by_hand import START

from kafka_rebalance.pipeline.commits_schema import COMMITS_SPARK_SCHEMA
from kafka_rebalance.pipeline.consumed_windows import consumed_windows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark


def commits_of(spark: SparkSession, samples: Sequence[Mapping[str, int]]) -> DataFrame:
    """One sample a minute of a partition with a log of 1,000 records: the offsets of each group."""
    rows = []
    for minute, groups in enumerate(samples):
        at = START + timedelta(minutes=minute)
        rows.append((at, "run", "t", "id", 0, 0, 1000, at, list(groups), list(groups.values())))
    return spark.createDataFrame(rows, COMMITS_SPARK_SCHEMA)


def seconds_and_records(consumed: DataFrame) -> list[tuple[float, float]]:
    return [(row["out_micros"] / 1e6, row["old_records"]) for row in consumed.collect()]


class TestGroups:
    def test_are_found_whatever_their_order(self, spark: SparkSession) -> None:
        """Each has its own offset in the sample before."""
        commits = commits_of(spark, [{"g": 10, "h": 500}, {"h": 600, "g": 30}])
        assert seconds_and_records(consumed_windows(commits)) == [(60.0, 120.0)]

    def test_one_that_is_gone_does_not_count(self, spark: SparkSession) -> None:
        """What the others read is known."""
        commits = commits_of(spark, [{"gone": 700, "g": 10}, {"g": 30}, {}])
        assert seconds_and_records(consumed_windows(commits)) == [(120.0, 20.0)]

    def test_one_that_is_new_leaves_the_pair_out(self, spark: SparkSession) -> None:
        """Where it began to read is not known."""
        commits = commits_of(spark, [{"g": 10}, {"g": 30, "new": 700}, {"g": 31, "new": 710}])
        assert seconds_and_records(consumed_windows(commits)) == [(60.0, 11.0)]

    def test_are_not_looked_up_one_by_one(self, spark: SparkSession) -> None:
        """A lookup in a map goes through its entries: a million comparisons for a partition with a thousand groups."""
        plan = consumed_windows(commits_of(spark, []))._jdf.queryExecution().optimizedPlan().toString()
        assert "map_zip_with" in plan
        assert "element_at" not in plan
