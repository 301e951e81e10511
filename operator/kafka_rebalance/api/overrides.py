"""Overrides of single settings by annotations, which take precedence over the spec for a limited time.

A controller that keeps applying the spec from Git does not remove annotations that are not in Git. An override expires
by itself; then the spec applies again. Pure: ``now`` is an argument.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Generic, Self, TypeVar

from pydantic import Field, model_validator
from pydantic.alias_generators import to_camel
from pydantic_core import from_json

from kafka_rebalance.api.execution_spec import Throttle
from kafka_rebalance.api.fields import ApiModel, RateOrUnset, Timestamp, format_time
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.throttle_resource import KafkaReassignmentThrottleSpec
from kafka_rebalance.api.validation import validate
from kafka_rebalance.errors import Refused
from kafka_rebalance.units import format_rate

SUSPEND_OVERRIDE = "kafkarebalance.dev/override-suspend"
"""On a KafkaRebalance; a `SuspendOverride` as JSON."""
THROTTLE_OVERRIDE = "kafkarebalance.dev/override-throttle"
"""On a KafkaRebalance (`ThrottleOverride`) or a KafkaReassignmentThrottle (`RatesOverride`)."""
FREEZE_OVERRIDE = "kafkarebalance.dev/override-freeze"
"""On a KafkaReassignmentThrottle; a `FreezeOverride`."""
OVERRIDES = (SUSPEND_OVERRIDE, THROTTLE_OVERRIDE, FREEZE_OVERRIDE)

SUSPEND, FREEZE = "spec.suspend", "spec.freeze"
THROTTLE, RATES = "spec.throttle", "spec.leaderRate and followerRate"
"""The settings, as they are shown."""

MAX_TEXT = 2000
"""Characters of an annotation: several times what an override needs. It is read in each round."""

Why = Annotated[str, Field(max_length=200)]


class SuspendOverride(ApiModel):
    """Instead of both spec.suspend and spec.execution.suspend."""

    suspend: bool
    until: Timestamp
    reason: Why = ""


class FreezeOverride(ApiModel):
    """Instead of spec.freeze."""

    freeze: bool
    until: Timestamp
    reason: Why = ""


class ThrottleOverride(Throttle):
    """Instead of the same rates of spec.throttle; with ``unlimited``, instead of all."""

    until: Timestamp
    reason: Why = ""


class RatesOverride(ApiModel):
    """Instead of the same rates of a KafkaReassignmentThrottle, also of single brokers; -1 means unset."""

    leader_rate: RateOrUnset = None
    follower_rate: RateOrUnset = None
    until: Timestamp
    reason: Why = ""

    @model_validator(mode="after")
    def _some_rate(self) -> Self:
        if not self.model_fields_set & {"leader_rate", "follower_rate"}:
            raise ValueError("set leaderRate, followerRate or both; -1 means unset")
        return self


@dataclass(frozen=True, slots=True)
class OverrideInForce:
    """A setting that does not come from the spec. ``setting``: its path there; ``reason``: why a person set it."""

    setting: str
    value: str
    until: datetime
    reason: str = ""

    def __str__(self) -> str:
        why = f" ({self.reason})" if self.reason else ""
        return f"{self.setting} is {self.value} until {format_time(self.until)}{why}"


_SIDES = ("leaderRate", "followerRate", "logDirRate")
_Spec = TypeVar("_Spec", KafkaRebalanceSpec, KafkaReassignmentThrottleSpec)


@dataclass(frozen=True, slots=True)
class Overridden(Generic[_Spec]):
    """The effective spec, with the overrides in force. ``problems``: why annotations have no effect."""

    spec: _Spec
    in_force: tuple[OverrideInForce, ...] = ()
    problems: tuple[str, ...] = ()


_Override = TypeVar("_Override", SuspendOverride, ThrottleOverride, FreezeOverride, RatesOverride)


def overridden_rebalance(
    spec: KafkaRebalanceSpec, annotations: Mapping[str, str], now: datetime
) -> Overridden[KafkaRebalanceSpec]:
    """The spec of a KafkaRebalance at this time."""
    found = _Annotations(annotations, now)
    if (suspend := found.read(SUSPEND_OVERRIDE, SuspendOverride)) is not None:
        execution = spec.execution.model_copy(update={"suspend": suspend.suspend})
        spec = spec.model_copy(update={"suspend": suspend.suspend, "execution": execution})
        found.holds(SUSPEND, _word(suspend.suspend), suspend)
    if (throttle := found.read(THROTTLE_OVERRIDE, ThrottleOverride)) is not None:
        given = spec.throttle.model_dump(exclude_none=True) if spec.throttle is not None else {}
        rates = throttle.model_dump(exclude_none=True, exclude={"until", "reason"})
        both = rates if throttle.unlimited or given.get("unlimited") else {**given, **rates}
        spec = spec.model_copy(update={"throttle": Throttle(**both)})
        sides = (throttle.leader_rate, throttle.follower_rate, throttle.log_dir_rate)
        found.holds(THROTTLE, _rates(dict(zip(_SIDES, sides, strict=True))), throttle)
    return Overridden(spec, tuple(found.in_force), tuple(found.problems))


def overridden_throttle(
    spec: KafkaReassignmentThrottleSpec, annotations: Mapping[str, str], now: datetime
) -> Overridden[KafkaReassignmentThrottleSpec]:
    """The spec of a KafkaReassignmentThrottle at this time."""
    found = _Annotations(annotations, now)
    if (rates := found.read(THROTTLE_OVERRIDE, RatesOverride)) is not None:
        given = rates.model_dump(include=rates.model_fields_set & {"leader_rate", "follower_rate"})
        rows = (row.model_copy(update=dict.fromkeys(given)) for row in spec.brokers)
        brokers = tuple(row for row in rows if row.leader_rate is not None or row.follower_rate is not None)
        spec = spec.model_copy(update={**given, "brokers": brokers})
        found.holds(RATES, _rates({to_camel(side): rate for side, rate in given.items()}), rates)
    if (freeze := found.read(FREEZE_OVERRIDE, FreezeOverride)) is not None:
        spec = spec.model_copy(update={"freeze": freeze.freeze})
        found.holds(FREEZE, _word(freeze.freeze), freeze)
    return Overridden(spec, tuple(found.in_force), tuple(found.problems))


class _Annotations:
    """Reads the overrides of one resource, and collects those in force and those that cannot be read."""

    def __init__(self, annotations: Mapping[str, str], now: datetime) -> None:
        self._annotations, self._now = annotations, now
        self.in_force: list[OverrideInForce] = []
        self.problems: list[str] = []

    def read(self, name: str, model: type[_Override]) -> _Override | None:
        """The override, unless it has ended; None also where it cannot be read."""
        if name not in self._annotations:
            return None
        path, text = f"metadata.annotations[{name}]", self._annotations[name]
        if len(text) > MAX_TEXT:
            self.problems.append(f"{path}: must have at most {MAX_TEXT} characters")
            return None
        try:
            # Where the standard library raises RecursionError, this parser raises ValueError.
            override = validate(model, from_json(text, allow_inf_nan=False), path)
        except Refused as refused:
            self.problems.append(refused.message)
        except ValueError as error:
            self.problems.append(f"{path}: must be a JSON object, found {text!r:.60} ({error})")
        else:
            return override if self._now < override.until else None
        return None

    def holds(self, setting: str, value: str, override: _Override) -> None:
        self.in_force.append(OverrideInForce(setting, value, override.until, override.reason))


def _word(value: bool) -> str:
    return "true" if value else "false"


def _rates(rates: Mapping[str, int | None]) -> str:
    """The rates that are given; none: unlimited."""
    given = {side: rate for side, rate in rates.items() if rate is not None}
    if len(set(given.values())) == 1 and {"leaderRate", "followerRate"} == given.keys():
        return format_rate(given["leaderRate"])
    return ", ".join(f"{side} {format_rate(rate)}" for side, rate in given.items()) or "unlimited"
