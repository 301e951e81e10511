from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from kafka_rebalance.pipeline.stage_progress import StageProgress, watched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class TestWatched:
    def test_tells_how_many_tasks_are_done(self, spark: SparkSession) -> None:
        """The job runs until the progress was reported."""
        told: list[StageProgress] = []
        with watched(spark, told.append):
            for _ in range(60):
                spark.range(0, 4, 1, 4).selectExpr("java_method('java.lang.Thread', 'sleep', 300L)").collect()
                if told:
                    break
        assert told
        assert all(0 <= progress.done <= progress.tasks for progress in told)
        assert max(progress.tasks for progress in told) >= 4
