"""The load model as JSON, version 1, and how old a model of any version may be.

Version 2 is Parquet (`storage`). Version 1 is not written any more, but stays readable, so that an upgrade does not
refuse yesterday's file. It is one gzip'd JSON object; ``partitions`` has one row per partition in the order of
``columns``. Opens no files and reads no clock.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.json_shapes import decode_object
from kafka_rebalance.model.load import LoadModel, PartitionLoad
from kafka_rebalance.model.topology import TopicPartition
from kafka_rebalance.reasons import Reason
from kafka_rebalance.units import format_duration

VERSION = 1
SOURCE = "LoadModel"
CLOCK_SKEW = timedelta(minutes=5)
_MAX_BYTES = 512 * 2**20
"""Unpacked: a million partitions take about 120 MB."""
_COLUMNS = (
    "topic",
    "partition",
    "topicId",
    "sizeBytes",
    "bytesInPerSecond",
    "bytesInP95",
    "bytesInMax",
    "coveredSeconds",
)


def parse_load_model(data: bytes) -> LoadModel:
    """The model of an artefact, gzip'd or plain. Raises Refused (LoadModelInvalid) with what is wrong."""
    document = _decode(data)
    version = document.get("version")
    if version != VERSION:
        raise invalid(f"it is of version {version!r}, this program reads version {VERSION} as JSON")
    if document.get("columns") != list(_COLUMNS):
        raise invalid(f"its columns are {document.get('columns')!r}, expected {list(_COLUMNS)}")
    try:
        return LoadModel(
            source=SOURCE,
            measured_at=parse_time(document["windowEnd"]),
            partitions=dict(_parse_row(row) for row in document["partitions"]),
            cluster_id=_text(document["clusterId"]),
            window_start=parse_time(document["windowStart"]),
            samples=_count(document["samples"]),
        )
    except KeyError as missing:
        raise invalid(f"{missing.args[0]} is missing") from missing
    except (TypeError, ValueError) as wrong:
        raise invalid(str(wrong)) from wrong


def check_usable(model: LoadModel, cluster_id: str, now: datetime, max_age: timedelta) -> None:
    """Raise Refused if the model is of another cluster, or (LoadModelStale) its newest sample older than ``max_age``.

    A model from the future, beyond a clock skew, is also refused: its age is not known.
    """
    if model.cluster_id != cluster_id:
        raise Refused(
            Reason.LOAD_MODEL_STALE, f"the load model belongs to cluster {model.cluster_id}, not to {cluster_id}"
        )
    if model.measured_at is None:
        raise Refused(Reason.LOAD_MODEL_STALE, "the load model does not say when it was measured")
    age = now - model.measured_at
    allowed = format_duration(max_age.total_seconds())
    newest = f"the newest sample of the load model is of {_render_time(model.measured_at)}"
    if age > max_age:
        old = format_duration(age.total_seconds())
        raise Refused(
            Reason.LOAD_MODEL_STALE, f"{newest}, {old} ago; at most {allowed} is allowed: run the sampler and Spark"
        )
    if age < -CLOCK_SKEW:
        ahead = format_duration(-age.total_seconds())
        raise Refused(Reason.LOAD_MODEL_STALE, f"{newest}, {ahead} ahead of this machine's clock: set the clocks right")


def _parse_row(row: Any) -> tuple[TopicPartition, PartitionLoad]:
    if not isinstance(row, list) or len(row) != len(_COLUMNS):
        raise ValueError(f"a row of partitions is {row!r}, expected {len(_COLUMNS)} values")
    topic, partition, topic_id, size, mean, p95, highest, covered = row
    load = PartitionLoad(
        size_bytes=_count(size),
        bytes_in_per_second=_rate(mean),
        bytes_in_p95=_rate(p95),
        bytes_in_max=_rate(highest),
        covered_seconds=_rate(covered) or 0.0,
        topic_id=_text(topic_id),
    )
    return TopicPartition(_text(topic), _count(partition)), load


def _decode(data: bytes) -> Mapping[str, Any]:
    try:
        return decode_object(data, _MAX_BYTES)
    except ValueError as error:
        raise invalid(str(error)) from error


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not text")
    return value


def _count(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ValueError(f"{value!r} is not a count")
    return value


def _rate(value: Any) -> float | None:
    if value is None:
        return None
    # NaN, which Python's JSON accepts, also fails the comparison.
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
        raise ValueError(f"{value!r} is not a rate")
    return float(value)


def parse_time(value: Any) -> datetime:
    """A time of an artefact. Raises ValueError or TypeError unless it is one with a zone."""
    moment = datetime.fromisoformat(_text(value))
    if moment.tzinfo is None:
        raise ValueError(f"{value!r} is a time without a zone")
    return moment


def _render_time(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def invalid(why: str) -> Refused:
    """What a reader raises for an artefact that it cannot use."""
    return Refused(
        Reason.LOAD_MODEL_INVALID, f"the load model cannot be read: {why}; run `kafka-rebalance pipeline load-model`"
    )
