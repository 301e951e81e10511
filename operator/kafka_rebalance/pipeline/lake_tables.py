"""The tables of a lake: where the files and manifests of each lie, and which schema they have.

Manifests of samples were there first, directly in ``manifests``; those of another table are in a directory of its name
there, which versions that do not know the table ignore.
"""

from dataclasses import dataclass

import pyarrow as pa

from kafka_rebalance.pipeline.commits_schema import COMMITS_ARROW_SCHEMA, COMMITS_VERSION
from kafka_rebalance.pipeline.metrics_schema import METRICS_ARROW_SCHEMA, METRICS_VERSION
from kafka_rebalance.pipeline.schema import ARROW_SCHEMA, READABLE_VERSIONS, SCHEMA_VERSION


@dataclass(frozen=True, slots=True)
class LakeTable:
    """``files`` and ``manifests`` are directories of the lake; files of the versions ``readable`` are read."""

    files: str
    manifests: str
    schema: pa.Schema
    version: int
    readable: tuple[int, ...]

    def file_of(self, manifest: str) -> str:
        """The path of the file that a manifest names."""
        return f"{self.files}/{manifest.removeprefix(f'{self.manifests}/').removesuffix('.json')}.parquet"


SAMPLES = LakeTable("samples", "manifests", ARROW_SCHEMA, SCHEMA_VERSION, READABLE_VERSIONS)
OFFSETS = LakeTable("offsets", "manifests/offsets", COMMITS_ARROW_SCHEMA, COMMITS_VERSION, (COMMITS_VERSION,))
METRICS = LakeTable("metrics", "manifests/metrics", METRICS_ARROW_SCHEMA, METRICS_VERSION, (METRICS_VERSION,))
TABLES = (SAMPLES, OFFSETS, METRICS)
