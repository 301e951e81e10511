"""Keeps a lake small: merges many small files of samples into large ones, and deletes what is too old or superseded.

Rows are not changed. The merged file is published by a manifest that names those that it replaces. These are deleted by
a later run, manifests first: a load model job may be reading them. If anything is interrupted, a reader still finds
every sample exactly once, and the next run goes on.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet

from kafka_rebalance.pipeline.job_turns import TURNS
from kafka_rebalance.pipeline.lake import Lake, named_in
from kafka_rebalance.pipeline.lake_tables import TABLES, LakeTable
from kafka_rebalance.pipeline.sample_manifests import (
    Manifest,
    StoredBatch,
    days,
    names_of,
    publish,
    read,
    replaced_by,
    stamp_of,
    verified,
)
from kafka_rebalance.pipeline.stored_hours import HOUR, PLACES, hour_names, window_days
from kafka_rebalance.storage.locations import path_segment
from kafka_rebalance.storage.run_history import MOST_RUNS

FILE_BYTES = 128 << 20
"""About the size of merged files."""
MOST_BATCHES = 40_000
"""In a merged file: its manifest, with at most 530 bytes for each and the manifest that it replaces, must be read."""
SETTLED = timedelta(hours=1)
"""Newer files are not merged: a load model job may be reading them, and late ones may come."""
STILL_READ = timedelta(hours=6)
"""Files that were merged are deleted after this time, when no job can be reading them any more."""
UNUSED = timedelta(days=90)
"""After this time without a run, the steps of a cluster are deleted. Servers may claim any number of cluster ids, and
in this time a namespace may write half of a lake of 10 GiB. What was learnt from them stays in use."""
_ROW_GROUP = 1 << 20
_PIECE_ROWS = 4096
"""How many rows are read at a time: a file may unpack to a hundred times its size. Of rows with long lists, fewer."""
_PIECE_BYTES = 2 << 20
"""About the size of the lists in these rows."""
_COUNTED_ROWS = 256
"""The rows of which the lengths of lists are read at a time."""
_LISTS = {"isr": 4, "committed": 1 << 10}
"""Columns of lists, with bytes of an element: beside each committed offset there is the name of its group."""
_GROUP_BYTES = 128 << 20
"""The unpacked size at which a row group ends that has fewer than ``_ROW_GROUP`` rows."""


@dataclass(frozen=True, slots=True)
class Tidied:
    """What was done for one cluster."""

    merged_files: int
    into: int
    deleted_files: int

    def __add__(self, more: "Tidied") -> "Tidied":
        return Tidied(
            self.merged_files + more.merged_files, self.into + more.into, self.deleted_files + more.deleted_files
        )


def tidy(
    lake: Lake, cluster_id: str, now: datetime, keep: timedelta | None, keep_windows: timedelta | None = None
) -> Tidied:
    """`expire`, and then all of `merge`."""
    return Tidied(0, 0, expire(lake, cluster_id, now, keep, keep_windows)) + merge(lake, cluster_id, now)


def kept_clusters(lake: Lake) -> list[str]:
    """The ids of all clusters of which there may be something: windows are kept longer than samples."""
    places = (*(table.manifests for table in TABLES), PLACES[0])
    return sorted({cluster_id for place in places for cluster_id in named_in(lake, place)})


def expire(
    lake: Lake, cluster_id: str, now: datetime, keep: timedelta | None, keep_windows: timedelta | None = None
) -> int:
    """Delete what is older than ``keep`` (None: nothing) in every table. Returns the number of files.

    ``keep_windows``: the same for stored windows, which are not merged.
    """
    deleted = _expire_windows(lake, cluster_id, now - keep_windows if keep_windows else None, now - STILL_READ)
    if keep:
        for table in TABLES:
            deleted += sum(_expire(lake, cluster_id, day, now - keep, table) for day in days(lake, cluster_id, table))
    return deleted


def merge(lake: Lake, cluster_id: str, now: datetime) -> Tidied:
    """Merge the files of each day, in every table."""
    done = Tidied(0, 0, 0)
    for table in TABLES:
        for day in days(lake, cluster_id, table):
            done += Tidied(0, 0, _finish(lake, cluster_id, day, now - STILL_READ, table))
            for group in list(_groups(lake, cluster_id, day, now - SETTLED, table)):
                _merge(lake, cluster_id, group, table)
                done += Tidied(len(group), 1, 0)
    return done


def forget_models(lake: Lake, now: datetime) -> int:
    """Delete the load models of clusters without samples and windows, and their turns; returns the number of clusters.

    Only what was written before ``UNUSED``. Durations remain: they are learnt from runs.
    """
    tables = (*(table.manifests for table in TABLES), PLACES[0])
    used = {
        path_segment(cluster_id)
        for cluster_id in kept_clusters(lake)
        if any(lake.names(f"{place}/cluster={path_segment(cluster_id)}") for place in tables)
    }
    places = {"models": "", **{f"{TURNS}/{job}": "cluster=" for job in lake.names(TURNS)}}
    forgotten = set[str]()
    for place, prefix in places.items():
        for name in lake.names(place):
            if name.removeprefix(prefix) not in used and _forget_old(lake, f"{place}/{name}", now - UNUSED):
                forgotten.add(name.removeprefix(prefix))
    return len(forgotten)


def _forget_old(lake: Lake, directory: str, before: datetime) -> bool:
    """Whether files were deleted, with the directory if it has no others."""
    files = lake.files(directory)
    old = [name for name, at in files if at < before and not name.endswith("/durations.json")]
    if len(old) == len(files):
        lake.delete_directory(directory)
    for name in old:
        lake.delete(name)
    return bool(old)


def forget_runs(lake: Lake, now: datetime) -> int:
    """Delete the steps of runs that no durations are learnt from any more; returns the number of runs.

    These are all but the newest of each cluster, and all of a cluster that had no run for ``UNUSED``.
    """
    before = (now - UNUSED).date().isoformat()
    return sum(_forget(lake, f"steps/{cluster}", before) for cluster in lake.names("steps"))


def _forget(lake: Lake, place: str, before: str) -> int:
    days = lake.names(place)
    runs = [f"{place}/{day}/{name}" for day in days for name in lake.names(f"{place}/{day}")]
    runs = [name for name in runs if name.endswith(".parquet")]
    if days and days[-1].removeprefix("date=") < before:
        lake.delete_directory(place)
        return len(runs)
    for name in runs[:-MOST_RUNS]:
        lake.delete(name)
    return len(runs[:-MOST_RUNS])


def _expire(lake: Lake, cluster_id: str, day: str, before: datetime, table: LakeTable) -> int:
    """Delete by the time in the name, which is that of the last sample in a file, whether it can be read or not."""
    old = [name for name in names_of(lake, cluster_id, day, table) if stamp_of(name) < before]
    for name in old:
        _delete(lake, name, table)
    if day < before.date().isoformat():  # also what no manifest names, because a sampler was killed
        for place in (table.manifests, table.files):
            lake.delete_directory(f"{place}/cluster={path_segment(cluster_id)}/date={day}")
    return len(old)


def _expire_windows(lake: Lake, cluster_id: str, before: datetime | None, unread: datetime) -> int:
    """Delete old hours. Of an hour that was computed several times, the last one remains, and all while new."""
    deleted = 0
    for day in window_days(lake, cluster_id):
        hours: dict[datetime, list[tuple[datetime, str]]] = defaultdict(list)
        for name in hour_names(lake, cluster_id, day):
            hours[stamp_of(name)].append((lake.written_at(name) or unread, name))
        for hour, files in hours.items():
            files.sort()
            old = before is not None and hour + HOUR < before
            gone = files if old else files[:-1] if files[-1][0] < unread else []
            for _, name in gone:
                lake.delete(name)
                lake.delete(name.replace(PLACES[0], PLACES[1], 1).removesuffix(".json") + ".parquet")
            deleted += len(gone)
        if before is not None and day < before.date():  # also what no manifest names, because a job was killed
            for kind in PLACES:
                lake.delete_directory(f"{kind}/cluster={path_segment(cluster_id)}/date={day.isoformat()}")
    return deleted


def _finish(lake: Lake, cluster_id: str, day: str, before: datetime, table: LakeTable) -> int:
    """Delete what was merged before that time. Returns the number of files."""
    manifests, _ = read(lake, names_of(lake, cluster_id, day, table), table)
    there = {manifest.name for manifest in manifests}
    merged = [m for m in manifests if there.intersection(m.replaces) and (lake.written_at(m.name) or before) < before]
    obsolete = sorted(there & replaced_by(verified(lake, merged)[0]))
    for name in obsolete:
        _delete(lake, name, table)
    return len(obsolete)


def _groups(lake: Lake, cluster_id: str, day: str, before: datetime, table: LakeTable) -> Iterator[list[Manifest]]:
    """Files of one day that are worth merging, up to the size of a large file or manifest."""
    names = [name for name in names_of(lake, cluster_id, day, table) if stamp_of(name) < before]
    manifests, _ = read(lake, names, table)
    small = [m for m in manifests if m.schema_version == table.version and m.size_bytes < FILE_BYTES // 2]
    intact, _ = verified(lake, small)
    merged = replaced_by(intact)
    group, size, batches = list[Manifest](), 0, 0
    for manifest in intact:
        if manifest.name in merged:
            continue
        if group and (size + manifest.size_bytes > FILE_BYTES or batches + len(manifest.batches) > MOST_BATCHES):
            if len(group) > 1:
                yield group
            group, size, batches = [], 0, 0
        group.append(manifest)
        size, batches = size + manifest.size_bytes, batches + len(manifest.batches)
    if len(group) > 1:
        yield group


def _merge(lake: Lake, cluster_id: str, manifests: list[Manifest], table: LakeTable) -> None:
    sink = pa.BufferOutputStream()
    batches: set[StoredBatch] = set()
    with pyarrow.parquet.ParquetWriter(sink, table.schema, compression="zstd") as writer:
        waiting, rows, size = list[pa.Table](), 0, 0
        for manifest in manifests:
            if batches.issuperset(manifest.batches):
                continue  # somebody stored them twice
            batches.update(manifest.batches)
            for piece in _pieces(lake, manifest.path, table.schema):
                waiting.append(piece)
                rows, size = rows + piece.num_rows, size + piece.nbytes
                if rows >= _ROW_GROUP or size >= _GROUP_BYTES:
                    writer.write_table(pa.concat_tables(waiting))
                    waiting, rows, size = [], 0, 0
        if waiting:
            writer.write_table(pa.concat_tables(waiting))
    ordered = sorted(batches, key=lambda batch: batch.sampled_at)
    # Also what one of them replaced and is still there.
    replaces = tuple(name for manifest in manifests for name in (manifest.name, *manifest.replaces))
    publish(lake, cluster_id, sink.getvalue().to_pybytes(), tuple(ordered), replaces, table)


def _pieces(lake: Lake, path: str, schema: pa.Schema) -> Iterator[pa.Table]:
    """The rows of a file, some at a time. Columns that it has not are null."""
    with lake.filesystem.open_input_file(f"{lake.root}/{path}") as source:
        file = pyarrow.parquet.ParquetFile(source, pre_buffer=False)
        for batch in file.iter_batches(_piece_rows(file)):
            columns = [
                batch[f.name].cast(f.type) if f.name in batch.schema.names else pa.nulls(batch.num_rows, f.type)
                for f in schema
            ]
            yield pa.table(columns, schema=schema)


def _piece_rows(file: pyarrow.parquet.ParquetFile) -> int:
    """How many rows have about ``_PIECE_BYTES`` if each has the longest list of the file."""
    rows = _PIECE_ROWS
    for name in set(_LISTS).intersection(file.schema_arrow.names):
        for batch in file.iter_batches(_COUNTED_ROWS, columns=[name]):
            longest = pyarrow.compute.max(pyarrow.compute.list_value_length(batch[name])).as_py() or 0
            rows = min(rows, _PIECE_BYTES // max(1, longest * _LISTS[name]))
    return max(1, rows)


def _delete(lake: Lake, name: str, table: LakeTable) -> None:
    """The manifest first: without it the file is not there."""
    lake.delete(name)
    lake.delete(table.file_of(name))
