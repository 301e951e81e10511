from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.unit.cli.commands.plan_runs import CLUSTER, planned, run, table

from kafka_rebalance.model.duration_model import DurationModel

MODEL = DurationModel("c1", 40, datetime(2026, 3, 4, tzinfo=UTC), 0.5, None, 10.0, 0.0, 0.5, 1.0, 2.0)
SIZES = {**CLUSTER, "partitions": [{**p, "size": 50 * 2**30} for p in CLUSTER["partitions"]]}


@pytest.fixture
def durations(tmp_path: Path) -> str:
    place = tmp_path / "durations.json"
    place.write_bytes(MODEL.to_json())
    return str(place)


def test_how_long_it_takes_at_the_default_throttle(durations: str) -> None:
    """As an interval with its source."""
    summary = planned("--durations", durations, cluster=SIZES)["summary"]
    assert summary["replicaMoves"] > 0
    eta = summary["eta"]
    assert (eta["source"], eta["runs"]) == ("History", 40)
    assert eta["longestSeconds"] == pytest.approx(4 * eta["shortestSeconds"], abs=2)
    assert eta["shortestSeconds"] > 0.5 * 50 * 2**30 / (0.5 * 50 * 2**20)
    assert "finishWithin" not in summary


def test_the_throttle_to_end_in_time(durations: str) -> None:
    """Twice the time is enough for half the rate."""
    rates = [
        planned("--durations", durations, "--finish-within", time, cluster=SIZES)["summary"]["finishWithin"]["rate"]
        for time in ("8h", "16h")
    ]
    assert rates[0] == pytest.approx(2 * rates[1], rel=0.03)
    text = table("--durations", durations, "--finish-within", "8h", cluster=SIZES)
    assert f"to end within 8h: leaderRate and followerRate {rates[0]} (" in text
    assert "(eight of ten, from 40 runs)" in text
    assert "no throttle is enough" in table("--durations", durations, "--finish-within", "5s", cluster=SIZES)


@pytest.mark.parametrize(
    ("options", "cluster", "code", "said"),
    [
        (["--finish-within", "8h"], SIZES, 2, "--finish-within requires --durations"),
        (["--durations", "{durations}"], CLUSTER, 3, "refused (SizesUnknown)"),
        (["--durations", "{broken}"], SIZES, 3, "refused (DurationModelInvalid)"),
    ],
)
def test_what_cannot_be_said_is_refused(
    options: list[str], cluster: object, code: int, said: str, durations: str, tmp_path: Path
) -> None:
    """The message says what is missing."""
    import json

    broken = tmp_path / "broken.json"
    broken.write_text("{}")
    done = run(
        "--cluster",
        "-",
        *(option.format(durations=durations, broken=broken) for option in options),
        stdin=json.dumps(cluster).encode(),
    )
    assert done.returncode == code
    assert said in done.stderr.decode()
