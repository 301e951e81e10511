"""Plans many clusters in one Spark job: one task for each cluster file, the largest first.

The task reads the file itself, so that no snapshot passes through this process or the JVM. An error of one cluster is
the result of that cluster; the other clusters are planned.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.fs

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.json_shapes import read_limited
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.storage.locations import store_failed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_ENDINGS = (".json", ".json.gz")
_RESULT = "place int, document string, error string"
_ROWS = pa.schema([("place", pa.int32()), ("document", pa.string()), ("error", pa.string())])

MakePlan = Callable[[bytes], Mapping[str, Any]]
"""The content of a cluster file -> the document of its plan. Runs in a task: it must be importable there."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster file. ``cluster``: its name without the ending."""

    cluster: str
    file: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class FleetResult:
    """The plan of one cluster as a document, or why there is none."""

    cluster: str
    document: Mapping[str, Any] | None
    error: str = ""


def find_snapshots(place: str) -> tuple[str, tuple[Snapshot, ...]]:
    """The cluster files in a directory or URI, whose last part may be a pattern with ``*``; and where they are.

    ValueError if two have the same name; OSError if the place cannot be listed.
    """
    directory, pattern = place, "*"
    if "*" in place:
        directory, _, pattern = place.rpartition("/")
        directory = directory or ("/" if place.startswith("/") else ".")
    lake = Lake.open(directory)
    infos = lake.filesystem.get_file_info(pyarrow.fs.FileSelector(lake.root or "/", allow_not_found=True))
    found: dict[str, Snapshot] = {}
    for info in sorted(infos, key=lambda info: str(info.base_name)):
        ending = next((ending for ending in _ENDINGS if info.base_name.endswith(ending)), None)
        if not info.is_file or ending is None or not fnmatchcase(info.base_name, pattern):
            continue
        cluster = info.base_name.removesuffix(ending)
        if cluster in found:
            raise ValueError(f"{found[cluster].file} and {info.base_name} are both of cluster {cluster}: remove one")
        found[cluster] = Snapshot(cluster, info.base_name, info.size)
    return directory, tuple(found.values())


def plan_each(
    spark: "SparkSession", directory: str, snapshots: Sequence[Snapshot], make: MakePlan, plans: str | None = None
) -> list[FleetResult]:
    """The results in the order of ``snapshots``. ``plans``: directory or URI that also gets each document."""
    longest_first = sorted(range(len(snapshots)), key=lambda place: -snapshots[place].size_bytes)

    def task(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                place = longest_first[number]
                row = {"place": place, **_planned(directory, snapshots[place], make, plans)}
                yield pa.RecordBatch.from_pylist([row], schema=_ROWS)

    rows = spark.range(0, len(snapshots), 1, len(snapshots)).mapInArrow(task, _RESULT).collect()
    by_place = {row["place"]: row for row in rows}
    results = []
    for place, snapshot in enumerate(snapshots):
        row = by_place[place]
        document = json.loads(row["document"]) if row["document"] else None
        results.append(FleetResult(snapshot.cluster, document, row["error"] or ""))
    return results


def _planned(directory: str, snapshot: Snapshot, make: MakePlan, plans: str | None) -> dict[str, str | None]:
    """The summary of the plan: its partitions go to ``plans`` only."""
    try:
        lake = Lake.open(directory)
        with lake.filesystem.open_input_stream(f"{lake.root}/{snapshot.file}", compression=None) as stream:
            data = read_limited(stream.read)
        document = dict(make(data))
        if plans is not None:
            Lake.open(plans).write(f"{snapshot.cluster}.json", json.dumps(document).encode())
        document.pop("partitions", None)
        return {"document": json.dumps(document), "error": None}
    except RebalanceError as error:
        return {"document": None, "error": f"{error.reason}: {error.message}"}
    except OSError as error:
        return {"document": None, "error": store_failed("it cannot be read, or its plan not written", error).message}
    except Exception as error:  # noqa: BLE001 - a defect that one cluster shows must not stop the others
        return {"document": None, "error": f"{type(error).__name__}: {error}"}
