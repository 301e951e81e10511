"""Lakes whose true rates are known: each topic is a function of time, read by a sampler at chosen moments."""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from kafka_rebalance.model.topology import BrokerId
from kafka_rebalance.pipeline.commits_schema import CommitRow
from kafka_rebalance.pipeline.sample_manifests import write_batch
from kafka_rebalance.pipeline.schema import SampleBatch, SampleRow

CLUSTER = "c1"
START = datetime(2026, 2, 28, 23, 45, tzinfo=UTC)  # where a window begins; the samples cross midnight
RUN = "run-a"


@dataclass
class Samples:
    """Rows by second; calls of ``leader`` and ``follower`` read like lines of a table."""

    cluster: str = CLUSTER
    run: str = RUN
    rows: dict[float, list[SampleRow]] = field(default_factory=lambda: defaultdict(list))
    commits: dict[float, list[CommitRow]] = field(default_factory=lambda: defaultdict(list))

    def leader(
        self,
        at: float,
        topic: str,
        start: float,
        end: float,
        size: float | None,
        *,
        broker: int = 1,
        epoch: int | None = 5,
        topic_id: str = "a",
        late: float = 0.0,
        whole: bool | None = True,
        groups: Mapping[str, float] | None = None,
        partition: int = 0,
    ) -> None:
        """``late``: how long after the begin of the sample the answers were read. ``groups``: what they committed."""
        read = START + timedelta(seconds=at + late)
        row = _with(self._row(at, topic, broker, size, topic_id), partition=partition)
        self.rows[at].append(
            _with(
                row,
                leader=broker,
                leader_epoch=epoch,
                log_start_offset=round(start),
                log_end_offset=round(end),
                size_at=None if size is None else read,
                offsets_at=read,
                whole_log=whole,
            )
        )

        if groups is not None:
            self.commits[at].append(
                CommitRow(
                    *(row.sampled_at, self.run, row.sequence, self.cluster, topic, topic_id, partition),
                    log_start_offset=round(start),
                    log_end_offset=round(end),
                    committed_at=read,
                    groups=tuple(groups),
                    committed=tuple(map(round, groups.values())),
                )
            )

    def follower(
        self, at: float, topic: str, size: float | None, *, broker: int = 2, leader: int | None = 1, topic_id: str = "a"
    ) -> None:
        self.rows[at].append(_with(self._row(at, topic, broker, size, topic_id), leader=leader))

    def log_dir(self, at: float, broker: int) -> None:
        """A row of a log dir, which says that the broker is there even if it has no replicas."""
        row = _with(self._row(at, "", broker, None, ""), topic=None, topic_id=None, partition=None)
        self.rows[at].append(_with(row, log_dir="/data", total_bytes=10, usable_bytes=5))

    def batch(self, at: float, missing: tuple[int, ...] = ()) -> SampleBatch:
        moment = START + timedelta(seconds=at)
        brokers = tuple(BrokerId(broker) for broker in missing)
        number, commits = round(at * 10) + 10**6, tuple(self.commits.get(at, ()))
        return SampleBatch(moment, self.cluster, tuple(self.rows[at]), brokers, self.run, number, commits)

    def write(self, lake: Path, missing: dict[float, tuple[int, ...]] | None = None) -> None:
        for at in self.rows:
            write_batch(str(lake), self.batch(at, (missing or {}).get(at, ())))

    def _row(self, at: float, topic: str, broker: int, size: float | None, topic_id: str) -> SampleRow:
        moment = START + timedelta(seconds=at)
        return SampleRow(
            sampled_at=moment,
            run_id=self.run,
            sequence=round(at * 10) + 10**6,
            cluster_id=self.cluster,
            topic=topic,
            topic_id=topic_id,
            partition=0,
            broker=broker,
            log_dir=f"/data-{broker}",
            size_bytes=None if size is None else round(size),
            size_at=None if size is None else moment,
        )


def write_version_1(lake: Path, at: float, topic: str, end: int, size: int) -> None:
    """A batch as the first version of the schema had it, with one leader's row."""
    moment = START + timedelta(seconds=at)
    schema = pa.schema(
        [
            ("sampled_at", pa.timestamp("us", tz="UTC")),
            *((name, pa.string()) for name in ("cluster_id", "topic", "topic_id")),
            *((name, pa.int32()) for name in ("partition", "broker")),
            ("is_leader", pa.bool_()),
            *((name, pa.int64()) for name in ("size_bytes", "log_start_offset", "log_end_offset")),
        ]
    )
    values = (moment, CLUSTER, topic, "a", 0, 1, True, size, 0, end)
    sink = pa.BufferOutputStream()
    pyarrow.parquet.write_table(pa.table([[value] for value in values], schema=schema), sink)
    data = sink.getvalue().to_pybytes()
    name = f"{moment.strftime('%Y%m%dT%H%M%S.%fZ')}-{hashlib.md5(str(at).encode()).hexdigest()}"
    place = f"cluster={CLUSTER}/date={moment.date()}"
    manifest = {
        "schemaVersion": 1,
        "path": f"samples/{place}/{name}.parquet",
        "sampledAt": moment.isoformat(),
        "clusterId": CLUSTER,
        "rows": 1,
        "sizeBytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "missingBrokers": [],
    }
    for kind, ending, content in (("samples", "parquet", data), ("manifests", "json", json.dumps(manifest).encode())):
        path = lake / kind / place / f"{name}.{ending}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _with(row: SampleRow, **values: object) -> SampleRow:
    return SampleRow(**{name: getattr(row, name) for name in SampleRow.__slots__} | values)
