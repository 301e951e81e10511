"""Archives the classes with which Spark makes a load model, so that Java loads them with less CPU.

python -m kafka_rebalance.pipeline.class_archive [FILE]

Makes a load model of a few samples; at its end Java writes the classes that it has loaded (185 MB). The default file is
beside pyspark's jars, where every session finds it. The image runs this when it is built. Java ignores a file that
another Java has written, or that was written with other jars: write it again then.
"""

import os
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.pipeline.commits_schema import CommitRow
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow

NAME = "load-model.jsa"
_CLUSTER = "archive"
_BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
_SECONDS = 300


def java_options() -> tuple[str, ...]:
    """Java options of a session: use the archive if it exists, and ignore it silently if it does not match."""
    file = beside_pyspark()
    return (f"-XX:SharedArchiveFile={file}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off") if file.is_file() else ()


def beside_pyspark() -> Path:
    """Where every session looks for the archive."""
    import pyspark

    return Path(pyspark.__file__).with_name(NAME)


def write(file: Path) -> None:
    """Write the archive. Raises FileNotFoundError if Java did not write one."""
    from pyspark import SparkContext

    from kafka_rebalance.pipeline.job import build
    from kafka_rebalance.pipeline.sample_manifests import write_batch
    from kafka_rebalance.pipeline.spark_session import spark_session

    file.unlink(missing_ok=True)
    # Java warns of each of a thousand classes that it does not archive.
    os.environ["SPARK_SUBMIT_OPTS"] = f"-XX:ArchiveClassesAtExit={file} -Xlog:cds=error -Xlog:cds+dynamic=error"
    with tempfile.TemporaryDirectory() as lake:
        for batch in _batches():
            write_batch(lake, batch)
        with spark_session() as spark:
            build(spark, lake, _CLUSTER, timedelta(days=1), _BEGIN + timedelta(hours=1))
    gateway = SparkContext._gateway  # noqa: SLF001 - nothing public has the process
    assert gateway is not None  # noqa: S101 - a session has just ended
    gateway.shutdown()
    gateway.proc.stdin.close()  # Java ends when its input ends
    gateway.proc.wait(_SECONDS)
    file.stat()


def _batches() -> Iterator[SampleBatch]:
    """Three samples of two partitions with a consumer group."""
    tps = [TopicPartition("topic", 0), TopicPartition("topic", 1)]
    for number in range(3):
        at = _BEGIN + timedelta(minutes=number)
        common = (at, "run", number, _CLUSTER)
        rows = tuple(
            SampleRow(
                *common,
                topic=tp.topic,
                topic_id="id",
                partition=tp.partition,
                broker=1,
                leader=1,
                leader_epoch=1,
                log_dir="/data",
                size_bytes=1000 * (number + 1),
                size_at=at,
                log_start_offset=0,
                log_end_offset=10 * (number + 1),
                offsets_at=at,
                isr=(1,),
                whole_log=True,
            )
            for tp in tps
        )
        commits = tuple(
            CommitRow(
                *common,
                topic=tp.topic,
                topic_id="id",
                partition=tp.partition,
                log_start_offset=0,
                log_end_offset=10 * (number + 1),
                committed_at=at,
                groups=("group",),
                committed=(10 * number,),
            )
            for tp in tps
        )
        yield SampleBatch(at, _CLUSTER, rows, (), "run", number, commits)


if __name__ == "__main__":
    write(Path(sys.argv[1]) if sys.argv[1:] else beside_pyspark())
