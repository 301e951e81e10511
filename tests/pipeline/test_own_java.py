"""The Java that the commands start for Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def test_it_optimises_only_what_runs_long(spark: SparkSession) -> None:
    """A hundred times the calls of Java's default of 5,000: most jobs are over before the optimising compiler pays."""
    java = spark.sparkContext._jvm
    assert java is not None
    kind = java.java.lang.Class.forName("com.sun.management.HotSpotDiagnosticMXBean")
    options = java.java.lang.management.ManagementFactory.getPlatformMXBean(kind)
    assert options.getVMOption("Tier4InvocationThreshold").getValue() == "500000"
