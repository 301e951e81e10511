"""How long a run takes, learnt from the runs of the same cluster: a few numbers that a person can check.

    seconds = fixed + max(busiest pipe, steps one after the other / parallel) + overhead x steps / parallel

where a pipe carries ``efficiency`` of its throttle, at most ``capacity``. The interval is that of the runs it was
learnt from, each predicted from the others. Parses bytes and opens no files.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from kafka_rebalance.errors import Refused
from kafka_rebalance.model.run_shape import Flow, RunShape
from kafka_rebalance.reasons import Reason

VERSION = 1
_MAX_BYTES = 1 << 20
_OPTIONAL = ("efficiency", "capacity")
_NUMBERS = (*_OPTIONAL, "runs", "overhead_seconds", "fixed_seconds", "low", "middle", "high", "median_error")


@dataclass(frozen=True, slots=True)
class DurationModel:
    """The numbers of the formula above.

    ``efficiency``: of the throttle, None: no throttled run was seen. ``capacity``: bytes per second of one side of a
    broker without a throttle, None: no unthrottled run was seen. ``overhead_seconds``: of each step.
    ``fixed_seconds``: of each run, to begin and to end. ``low``, ``middle`` and ``high``: factors on the prediction,
    the quantiles of 10, 50 and 90 % of what the runs took. ``median_error``: of the prediction, relative; ``runs``: how
    many it was learnt from, the newest at ``newest``.
    """

    cluster_id: str
    runs: int
    newest: datetime
    efficiency: float | None
    capacity: float | None
    overhead_seconds: float
    fixed_seconds: float
    low: float = 1.0
    middle: float = 1.0
    high: float = 1.0
    median_error: float = 0.0

    def plain_seconds(self, shape: RunShape) -> float | None:
        """The formula above; None if no run like this was seen."""
        if not shape.steps:
            return 0.0
        pipes = [self._seconds(flow) for flow in shape.pipes]
        alone = [self._seconds(flow) for flow in shape.alone]
        if None in pipes or None in alone:
            return None
        in_line = sum(seconds for seconds in alone if seconds is not None) / shape.parallel
        busiest = max((seconds for seconds in pipes if seconds is not None), default=0.0)
        return self.fixed_seconds + max(busiest, in_line) + self.overhead_seconds * shape.steps / shape.parallel

    def interval(self, shape: RunShape) -> tuple[float, float] | None:
        """The seconds in which eight of ten runs end: not before the first, not after the second."""
        plain = self.plain_seconds(shape)
        return (plain * self.low, plain * self.high) if plain is not None else None

    def to_json(self) -> bytes:
        """The artefact."""
        return json.dumps({"version": VERSION, **asdict(self), "newest": self.newest.isoformat()}, indent=1).encode()

    def _seconds(self, flow: Flow) -> float | None:
        if not flow.amount:
            return 0.0
        rates = []
        if flow.rate is not None:
            if self.efficiency is None:
                return None
            rates.append(self.efficiency * flow.rate)
        elif self.capacity is None:
            return None
        if self.capacity is not None:
            rates.append(self.capacity)
        return flow.amount / min(rates) if min(rates) > 0 else math.inf


def parse_durations(data: bytes) -> DurationModel:
    """The artefact. Raises Refused (DurationModelInvalid) with what is wrong."""
    try:
        return _parsed(data)
    except (KeyError, TypeError, ValueError) as wrong:
        raise Refused(
            Reason.DURATION_MODEL_INVALID,
            f"the duration model cannot be read: {wrong!r}; run `kafka-rebalance pipeline history`",
        ) from wrong


def _parsed(data: bytes) -> DurationModel:
    if len(data) > _MAX_BYTES:
        raise ValueError(f"it has {len(data)} bytes")
    document: Mapping[str, Any] = json.loads(data)
    if document["version"] != VERSION:
        raise ValueError(f"it is of version {document['version']!r}, this program reads version {VERSION}")
    values = {name: document[name] for name in DurationModel.__slots__}
    newest = datetime.fromisoformat(values.pop("newest"))
    if newest.tzinfo is None:
        raise ValueError("newest is a time without a zone")
    for name in _NUMBERS:
        value = values[name]
        if value is None and name in _OPTIONAL:
            continue
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < math.inf:
            raise ValueError(f"{name} is {value!r}")
    return DurationModel(newest=newest, **values)
