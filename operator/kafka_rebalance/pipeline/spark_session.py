"""Starts Spark: on this machine, under spark-submit, or as a client of a server."""

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOCAL_MASTER = "local[*]"


@contextmanager
def spark_session(master: str | None = None) -> "Iterator[SparkSession]":
    """A session that logs little, stopped at the end; an active session is used and left running.

    Without ``master`` it is the one of spark-submit if that started this process, else ``local[*]``.
    """
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # not used here
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    chosen = master or (None if submitted else LOCAL_MASTER)
    builder = SparkSession.builder.appName("kafka-rebalance load-model")
    settings = _SETTINGS | (_local_settings() if chosen and chosen.startswith("local") else {})
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = (builder.master(chosen) if chosen else builder).getOrCreate()
    try:
        yield session
    finally:
        session.stop()


_SETTINGS = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}


def _local_settings() -> dict[str, str]:
    """For one machine: this Python, few shuffle partitions, no web UI, loopback only, no separate job to list files."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's own default is another Python, without us
    quiet = resources.files("kafka_rebalance.pipeline") / "log4j2.properties"
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={quiet}",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    }
