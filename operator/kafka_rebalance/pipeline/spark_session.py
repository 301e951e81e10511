"""Starts Spark: on this machine, under spark-submit, in Pods, or as a client of a server (Spark Connect)."""

import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING

from kafka_rebalance.errors import Refused
from kafka_rebalance.pipeline.cgroup_limits import CgroupLimits, heap_megabytes, of_machine, own_limits
from kafka_rebalance.pipeline.class_archive import java_options
from kafka_rebalance.reasons import Reason

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IN_CLUSTER = "k8s"
"""As a master: the API server of the Pod in which this process runs."""


@contextmanager
def spark_session(master: str | None = None, remote: str | None = None) -> "Iterator[SparkSession]":
    """A session that logs little, stopped at the end; an active session is used and left running.

    Without ``master`` it is the one of spark-submit if that started this process, else this machine, with the cores
    that the cgroup allows. ``remote`` is the URI of a Spark Connect server (``sc://host:15002``), which then has all
    settings except those of SQL.
    """
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")  # not used here
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        yield active
        return
    builder = SparkSession.builder.appName("kafka-rebalance load-model")
    settings = _SQL
    if remote:
        builder = builder.remote(remote)
    else:
        submitted = "PYSPARK_GATEWAY_PORT" in os.environ
        own = own_limits()
        chosen = master or (None if submitted else f"local[{own.cores}]")
        settings |= _QUIET
        if chosen == IN_CLUSTER:
            chosen, more = in_cluster(os.environ)
            settings |= more | _own_java(own)
        elif chosen and chosen.startswith("local"):
            settings |= _local_settings(own) | _own_java(own)
        builder = builder.master(chosen) if chosen else builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    try:
        yield session
    finally:
        session.stop()


def answers(session: "SparkSession") -> bool:
    """Whether Spark can compute: the samples of a cluster may have ended the driver or the server."""
    try:
        session.range(1).count()
    except Exception:  # noqa: BLE001 - of the connection, the driver or the server
        return False
    return True


def in_cluster(env: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """The master and the settings of a driver in a Pod, whose executors are other Pods. Raises Refused elsewhere.

    ``POD_NAME`` and ``POD_IP`` are those of this Pod; all other settings are in ``SPARK_CONF_DIR``.
    """
    try:
        host, port = env["KUBERNETES_SERVICE_HOST"], env["KUBERNETES_SERVICE_PORT"]
        own = {"spark.driver.host": env["POD_IP"], "spark.kubernetes.driver.pod.name": env["POD_NAME"]}
    except KeyError as missing:
        raise Refused(
            Reason.NOT_IN_POD,
            f"--master {IN_CLUSTER} starts executors from within a Pod, and {missing.args[0]} is not set: use the "
            "chart (pipeline.spark.master), or --master k8s://https://HOST:PORT with Spark's own settings",
        ) from missing
    return f"k8s://https://{f'[{host}]' if ':' in host else host}:{port}", own


_SQL = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    "spark.sql.parquet.compression.codec": "zstd",
}
_QUIET = {
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "WARN",
}


_LATE_OPTIMISATION = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    "-XX:Tier4InvocationThreshold=500000",
    "-XX:Tier4MinInvocationThreshold=60000",
    "-XX:Tier4CompileThreshold=1500000",
    "-XX:Tier4BackEdgeThreshold=400000",
)
"""A hundred times the defaults for calls, ten times for loops: at the defaults, the optimising compiler took two fifths
of the CPU of a job that ends within a minute. What runs for each row is still optimised, so large jobs are as fast."""
_SERIAL_CORES = 2
"""With so few cores, collecting garbage on one thread takes less CPU, and hardly more time."""
_USERS_OPTIONS = ("JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS")


def collector(cores: int, env: Mapping[str, str]) -> tuple[str, ...]:
    """Java's option for the collector; none if the user may have chosen one, because Java does not start with two."""
    chosen = any("GC" in env.get(name, "") for name in _USERS_OPTIONS)
    return () if chosen or cores > _SERIAL_CORES else ("-XX:+UseSerialGC",)


def _own_java(own: CgroupLimits) -> dict[str, str]:
    """For the Java that this process starts: its memory, unless SPARK_DRIVER_MEMORY says another, and few warnings."""
    quiet = resources.files("kafka_rebalance.pipeline") / "log4j2.properties"
    java = (*_LATE_OPTIMISATION, *collector(own.cores, os.environ), *java_options())
    options = " ".join((f"-Dlog4j2.configurationFile={quiet}", *java))
    settings = {"spark.driver.extraJavaOptions": options, "spark.ui.enabled": "false"}
    if "SPARK_DRIVER_MEMORY" not in os.environ:
        settings["spark.driver.memory"] = f"{heap_megabytes(own, of_machine())}m"
    return settings


def _local_settings(own: CgroupLimits) -> dict[str, str]:
    """For one machine: this Python, few shuffle partitions, loopback only, no separate job to list files."""
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # Spark's own default is another Python, without us
    return {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.sql.shuffle.partitions": str(2 * own.cores),
        "spark.sql.sources.parallelPartitionDiscovery.threshold": "100000",
    }
