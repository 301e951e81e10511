"""One job for many clusters gives the plans that `plan` gives for each of them alone."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from click.testing import CliRunner
from tests.fakes.whole_program import run_program
from tests.unit.cli.commands.plan_runs import RESOURCE

from kafka_rebalance.cli.commands.pipeline_command import pipeline
from kafka_rebalance.errors import Permanent

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def some_cluster(seed: int) -> dict[str, Any]:
    """Of 4 to 9 brokers in three racks, the last of them new, with 20 to 200 partitions of any size."""
    rng = random.Random(seed)
    brokers = rng.randrange(4, 10)
    return {
        "brokers": [{"id": b, "rack": "abc"[b % 3]} for b in range(brokers)],
        "partitions": [
            {"topic": f"t{p % 5}", "partition": p // 5, "replicas": rng.sample(range(brokers - 1), 3)}
            | ({"size": rng.randrange(10**9)} if rng.random() < 0.9 else {})
            for p in range(rng.randrange(20, 200))
        ],
    }


@pytest.fixture
def snapshots(tmp_path: Path) -> Path:
    """Four clusters, every second file gzipped."""
    place = tmp_path / "snapshots"
    place.mkdir()
    for seed in range(4):
        data = json.dumps(some_cluster(seed)).encode()
        if seed % 2:
            (place / f"cluster-{seed}.json.gz").write_bytes(gzip.compress(data))
        else:
            (place / f"cluster-{seed}.json").write_bytes(data)
    return place


def alone(file: Path, *options: str) -> dict[str, Any]:
    done = run_program("plan", "--cluster", str(file), "-o", "json", *options)
    assert done.code == 0, done.err
    document: dict[str, Any] = json.loads(done.out)
    del document["summary"]["planningSeconds"]
    return document


def test_plans_are_those_of_each_cluster_alone(spark: SparkSession, snapshots: Path, tmp_path: Path) -> None:
    """The same hash, partitions and certificate; the documents are in --plans."""
    krb = tmp_path / "krb.yaml"
    krb.write_text(yaml.safe_dump({**RESOURCE, "spec": {**RESOURCE["spec"], "topics": {"exclude": ["t1"]}}}))
    place = tmp_path / "plans"
    arguments = ["fleet", "--snapshots", str(snapshots), "--rebalance", str(krb), "--plans", str(place), "-o", "json"]
    done = CliRunner().invoke(pipeline, arguments, catch_exceptions=False)
    rows = {row["cluster"]: row for row in json.loads(done.stdout)["clusters"]}
    assert len(rows) == 4
    moved = 0
    for file in sorted(snapshots.iterdir()):
        name = file.name.partition(".")[0]
        expected = alone(file, "--rebalance", str(krb))
        written = json.loads((place / f"{name}.json").read_bytes())
        for document in (rows[name], written):
            document["summary"].pop("planningSeconds")
            assert document["summary"] == expected["summary"], name
        assert written["partitions"] == expected["partitions"], name
        moved += expected["summary"]["replicaMoves"]
    assert moved > 100


def test_what_is_wrong_with_one_cluster_is_said_of_it(
    spark: SparkSession, snapshots: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A damaged file, and one that `plan` refuses: the other clusters have their plans."""
    for file in list(snapshots.iterdir())[2:]:
        file.unlink()
    (snapshots / "damaged.json.gz").write_bytes(gzip.compress(b'{"brokers": [')[:-3])
    twice = {"brokers": [{"id": 1}, {"id": 1}], "partitions": []}
    (snapshots / "twice.json").write_text(json.dumps(twice))
    runner = CliRunner()
    with pytest.raises(Permanent, match="2 of 4 clusters have no plan: damaged, twice"):
        runner.invoke(pipeline, ["fleet", "--snapshots", str(snapshots)], catch_exceptions=False)
    result = runner.invoke(pipeline, ["fleet", "--snapshots", str(snapshots)])
    header, *rows = result.stdout.splitlines()
    assert header.split() == ["CLUSTER", "BROKERS", "PARTITIONS", "REPLICAS", "MOVES", "BOUND", "TO", "COPY", "HASH"]
    assert len(rows) == 2
    assert all("sha256:" in row for row in rows)
    said = result.stderr.splitlines()
    assert said[0].startswith("damaged: ClusterFileInvalid: Invalid value for --cluster: the gzip stream is broken")
    assert said[1] == "twice: DuplicateBroker: brokers[1].id: broker 1 is listed twice"


def test_a_wrong_rebalance_is_said_once(snapshots: Path, tmp_path: Path) -> None:
    """Before any task starts."""
    krb = tmp_path / "krb.yaml"
    krb.write_text("kind: Pod\n")
    result = CliRunner().invoke(pipeline, ["fleet", "--snapshots", str(snapshots), "--rebalance", str(krb)])
    assert result.exit_code == 2
    assert "--rebalance" in result.stderr
    nothing = CliRunner().invoke(pipeline, ["fleet", "--snapshots", str(tmp_path / "none")])
    assert "no *.json or *.json.gz is there" in nothing.stderr
