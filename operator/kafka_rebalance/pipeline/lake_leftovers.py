"""Deletes the files that killed writers have left in a lake, and files without a reader.

- Spark's output of a job, in ``unfinished``, that was not copied to its place.
- A file of samples, offsets, metrics or windows that no manifest names. The manifest is written after the file, and
  deleted before it.
- On a local disk the beginning of a file (``.part``), which is renamed when it is complete.

A job may still be writing such a file, so it is deleted only when it is a day old, by the clock of the store.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

from kafka_rebalance.pipeline.job_turns import TURNS
from kafka_rebalance.pipeline.lake import Lake
from kafka_rebalance.pipeline.lake_tables import TABLES
from kafka_rebalance.pipeline.stored_hours import PLACES
from kafka_rebalance.storage.daily_bytes import PLACE

UNFINISHED = "unfinished"
"""Where Spark writes what is copied to its place then."""
ABANDONED = timedelta(days=1)
"""No job writes for this long without a new file: the chart ends its Jobs after 6 hours."""
_OTHERS = ("models", "steps", PLACE, TURNS)
_FILES = {table.files: table.manifests for table in TABLES} | {PLACES[1]: PLACES[0]}
"""The directories of files, with those of the manifests that name them."""


def sweep(lake: Lake, now: datetime) -> int:
    """Delete them. Returns the number of files. If it is interrupted, the next run deletes the rest."""
    before = now - ABANDONED
    deleted = 0
    for directory, files in _unfinished(lake, before).items():
        lake.delete_directory(directory)
        deleted += files
    for name in _unnamed(lake, before):
        lake.delete(name)
        deleted += 1
    return deleted


def _unfinished(lake: Lake, before: datetime) -> dict[str, int]:
    """The directories of jobs that have not written since, with the number of their files."""
    found: dict[str, list[datetime]] = defaultdict(list)
    for name, written_at in lake.files(UNFINISHED):
        found["/".join(name.split("/")[:2])].append(written_at)
    return {directory: len(times) for directory, times in found.items() if max(times) < before}


def _unnamed(lake: Lake, before: datetime) -> Iterator[str]:
    for files, manifests in _FILES.items():
        # First the files: a manifest that comes between the two lists is seen.
        old = [name for name, written_at in lake.files(files) if written_at < before]
        named = {name.removeprefix(manifests).removesuffix(".json") for name, _ in lake.files(manifests)}
        for name in old:
            if name.endswith(".parquet") and name.removeprefix(files).removesuffix(".parquet") not in named:
                yield name
    for place in (*_FILES, *_FILES.values(), *_OTHERS):
        yield from (name for name, at in lake.files(place) if name.endswith(".part") and at < before)
