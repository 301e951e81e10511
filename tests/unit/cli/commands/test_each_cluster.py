"""Commands of the pipeline for several clusters."""

from __future__ import annotations

import pytest

from kafka_rebalance.cli.commands.each_cluster import each_cluster
from kafka_rebalance.errors import Refused, Transient
from kafka_rebalance.reasons import Reason


def failing(error: Exception, done: list[str]):
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


@pytest.mark.parametrize("error", [OSError(), Transient(Reason.LAKE_UNUSABLE, "no answer")])
def test_the_store_fails_for_all(error: Exception) -> None:
    with pytest.raises(type(error)):
        each_cluster(["c1", "c2"], failing(error, []))
