"""Learns the duration model from runs: the numbers that miss the fewest, and how far the runs are off.

The runs of a cluster are few, so this is plain arithmetic in one process: Spark has made a shape of each run from its
steps. The errors are of predictions by a model of the other runs, never of the run itself.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.duration_model import DurationModel
from kafka_rebalance.model.run_shape import RunShape
from kafka_rebalance.reasons import Reason

FEWEST_RUNS = 20
"""Of fewer, the tenths of the errors would be guesses."""
_FOLDS = 10
_STEPS = (2.0, 1.5, 1.25, 1.1, 1.05, 1.02, 1.01)
_QUANTILES = (0.1, 0.5, 0.9)
Numbers = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]


class PastRun(NamedTuple):
    """What a run was like, how long it took, and when it ended."""

    shape: RunShape
    seconds: float
    ended_at: datetime


def learn(cluster_id: str, runs: Sequence[PastRun]) -> DurationModel:
    """Raises Refused (NoHistory) if there are too few runs."""
    if len(runs) < FEWEST_RUNS:
        raise Refused(
            Reason.NO_HISTORY,
            f"{len(runs)} runs can be learnt from, {FEWEST_RUNS} are needed: runs that an operator with --history has "
            "seen from start to end, whose limits and rates did not change",
        )
    errors = np.array([error for fold in range(_FOLDS) for error in _errors(cluster_id, runs, fold)])
    low, middle, high = (float(np.exp(_quantile(errors, share))) for share in _QUANTILES)
    return replace(
        _fit(cluster_id, runs),
        low=low,
        middle=middle,
        high=high,
        median_error=float(np.median(np.abs(np.exp(errors - np.log(middle)) - 1))),
    )


def _errors(cluster_id: str, runs: Sequence[PastRun], fold: int) -> list[float]:
    """Logarithms of what the runs of a fold took, in parts of what a model of the others predicts."""
    others = _fit(cluster_id, [run for i, run in enumerate(runs) if i % _FOLDS != fold])
    predicted = ((run.seconds, others.plain_seconds(run.shape)) for run in runs[fold::_FOLDS])
    return [math.log(seconds / plain) for seconds, plain in predicted if plain]


def _quantile(errors: Numbers, share: float) -> float:
    """The quantile of the next value, not of the past ones: the fewer values there are, the further out it lies."""
    return float(np.quantile(errors, share, method="weibull"))


def _fit(cluster_id: str, runs: Sequence[PastRun]) -> DurationModel:
    """The numbers with the smallest sum of absolute errors, as factors; by a search that narrows down."""
    throttled = any(flow.rate is not None for run in runs for flow in run.shape.pipes)
    free = [run for run in runs if any(flow.rate is None for flow in run.shape.pipes)]
    fastest = [max(flow.amount for flow in run.shape.pipes) / run.seconds for run in free]
    model = DurationModel(
        cluster_id=cluster_id,
        runs=len(runs),
        newest=max(run.ended_at for run in runs),
        efficiency=0.9 if throttled else None,
        capacity=float(np.median(fastest)) if free else None,
        overhead_seconds=1.0,
        fixed_seconds=1.0,
    )
    columns = _Columns.of(runs)
    best = columns.miss(model)
    for factor in _STEPS:
        better = True
        while better:
            better = False
            for name in ("efficiency", "capacity", "overhead_seconds", "fixed_seconds"):
                value = getattr(model, name)
                for changed in () if value is None else (value * factor, value / factor):
                    tried = replace(model, **{name: changed})
                    miss = columns.miss(tried)
                    if miss < best - 1e-9:
                        model, best, better = tried, miss, True
    return model


@dataclass(frozen=True, slots=True)
class _Columns:
    """The shapes of all runs as arrays, for `DurationModel.plain_seconds` of all at once. Rate NaN: not throttled."""

    flows: tuple[tuple[Numbers, Numbers, Indices], ...]  # of pipes and of alone: amounts, rates, where each run starts
    waves: Numbers
    parallel: Numbers
    took: Numbers

    @classmethod
    def of(cls, runs: Sequence[PastRun]) -> Self:
        shapes = [run.shape for run in runs]
        flows = []
        for kind in ([shape.pipes for shape in shapes], [shape.alone for shape in shapes]):
            amounts, rates = (np.array([flow[i] for of in kind for flow in of], dtype=float) for i in (0, 1))
            starts = np.cumsum([0, *(len(of) for of in kind)])[:-1]
            flows.append((amounts, rates, starts))
        parallel = np.array([shape.parallel for shape in shapes], dtype=float)
        steps = np.array([shape.steps for shape in shapes], dtype=float)
        return cls(tuple(flows), steps / parallel, parallel, np.array([run.seconds for run in runs]))

    def miss(self, model: DurationModel) -> float:
        """The sum of the absolute errors, as logarithms of factors."""
        (pipes, first_pipes), (alone, first_alone) = (
            (amounts / self._carried(model, rates), starts) for amounts, rates, starts in self.flows
        )
        busiest, in_line = np.maximum.reduceat(pipes, first_pipes), np.add.reduceat(alone, first_alone)
        plain = np.maximum(busiest, in_line / self.parallel) + model.overhead_seconds * self.waves
        plain += model.fixed_seconds
        return float(np.abs(np.log(plain / self.took)).sum())

    @staticmethod
    def _carried(model: DurationModel, rates: Numbers) -> Numbers:
        most = model.capacity if model.capacity is not None else np.inf
        throttled: Numbers = np.where(np.isnan(rates), np.inf, rates * (model.efficiency or 1.0))
        return np.minimum(throttled, most)
