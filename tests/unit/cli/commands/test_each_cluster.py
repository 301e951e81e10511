"""Commands of the pipeline for several clusters."""

from __future__ import annotations

import pytest

from kafka_rebalance.cli.commands.each_cluster import each_cluster
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.reasons import Reason


def failing(error: BaseException, done: list[str]):
    def carry_out(cluster_id: str) -> None:
        if cluster_id == "c1":
            raise error
        done.append(cluster_id)

    return carry_out


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ArithmeticError("overflow\nat line 7"), "failed (ArithmeticError): overflow"),
        (Refused(Reason.NO_SAMPLES, "no file"), "refused (NoSamples): no file"),
        (Transient(Reason.LAKE_UNUSABLE, "no answer"), "failed (LakeUnusable): no answer"),
        (
            OSError("s3://key:secret@b: AWS Error NO_SUCH_KEY"),
            "failed (LakeUnusable): the lake cannot be used (NO_SUCH_KEY)",
        ),
    ],
)
def test_one_cluster_does_not_stop_the_others(capsys, error: Exception, said: str) -> None:
    done: list[str] = []
    assert each_cluster(["c1", "c2"], failing(error, done)) == ["c1"]
    assert done == ["c2"]
    assert capsys.readouterr().err == f"cluster c1: {said}\n"


def test_the_error_of_the_only_cluster() -> None:
    with pytest.raises(ArithmeticError):
        each_cluster(["c1"], failing(ArithmeticError(), []))


def test_output_that_nobody_reads_ends_it() -> None:
    with pytest.raises(BrokenPipeError):
        each_cluster(["c1", "c2"], failing(BrokenPipeError(), []))


def test_a_store_that_does_not_take_the_turn_fails_for_all() -> None:
    """It takes no results either."""

    def begin(_: str) -> None:
        raise OSError("full")

    done: list[str] = []
    with pytest.raises(OSError, match="full"):
        each_cluster(["c1", "c2"], failing(ArithmeticError(), done), begin=begin)
    assert done == []


def test_a_cluster_that_has_ended_spark_is_the_last_that_is_begun_with(capsys) -> None:
    """Else the others would fail too, and have their next turn after it."""
    begun: list[str] = []
    failed = each_cluster(
        ["c0", "c1", "c2"], failing(ArithmeticError("gone"), []), begin=begun.append, usable=lambda: False
    )
    assert (failed, begun) == (["c1", "c2"], ["c0", "c1"])
    assert capsys.readouterr().err.splitlines() == [
        "cluster c1: failed (ArithmeticError): gone",
        "Spark has ended: the other 1 clusters are left for the next run",
    ]


def test_a_cluster_ends_unless_the_job_is_killed() -> None:
    """A failure is an end too. Nobody can see the end of a killed Job."""
    ended: list[str] = []
    each_cluster(["c1", "c2"], failing(ArithmeticError(), []), end=ended.append)
    assert ended == ["c1", "c2"]
    with pytest.raises(KeyboardInterrupt):
        each_cluster(["c1", "c3"], failing(KeyboardInterrupt(), []), end=ended.append)
    assert ended == ["c1", "c2"]
