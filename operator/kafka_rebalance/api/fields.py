"""The field types of both resources, each with the schema that the API server enforces for it.

Every type is checked twice by the same rule: by the API server (pattern, bounds, CEL) when a resource is written, and
here when the operator reads it or a command reads a file. Nothing here depends on a resource.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, TypeVar

import re2
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    ValidationInfo,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic_core import CoreSchema, core_schema

from kafka_rebalance.model.repeated import repeated
from kafka_rebalance.units import parse_duration, parse_quantity

V = TypeVar("V")

MAX_RATE = 2**50
"""1 Pi bytes per second: more than any broker reaches; the sum of several still fits into Kafka's 64 bits."""
MAX_INT32 = 2**31 - 1
MAX_BYTES = 2**63 - 1
"""The largest integer of a resource. Kubernetes caps larger binary quantities to it."""
MAX_REGEX = 512
"""Maximum length of a regular expression."""
MAX_REGEXES = 100
"""Maximum number of regular expressions in a list."""
UNSET = -1
"""A rate that is explicitly unset, where an absent field means something else."""

_RE2_OPTIONS = re2.Options()
_RE2_OPTIONS.log_errors = False
_RE2_OPTIONS.max_mem = 64 * 1024
"""Bytes. By default an expression may use 8 MiB and take a second to compile, and a resource may have 300 of them."""
_UNICODE_CLASSES = 4
"""Each takes up to 0.7 ms to compile, during which no other thread runs: 160 of them took 0.1 s."""


class ApiModel(BaseModel):
    """A part of a resource: camelCase names in YAML, unknown fields refused, immutable."""

    model_config = ConfigDict(
        alias_generator=to_camel, extra="forbid", frozen=True, validate_by_alias=True, validate_by_name=True
    )


def rule(expression: str, message: str, **more: str) -> dict[str, str]:
    """One CEL validation rule. The API server prints ``message`` after the field's path."""
    return {"rule": expression, "message": message, **more}


def rules(*validations: dict[str, str]) -> dict[str, Any]:
    """CEL rules as extra keys of a schema."""
    return {"x-kubernetes-validations": list(validations)}


@dataclass(frozen=True, slots=True)
class Form:
    """Annotates a text of this form. A CEL rule, because the API server's message for a `pattern` is only the pattern.

    ``pattern`` is a regular expression for the whole text, in the syntax that Python and RE2 share.
    """

    pattern: str
    message: str

    def cel(self) -> str:
        """The rule as a CEL expression."""
        return f"self.matches(r'^({self.pattern})$')"

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self.check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return handler(schema) | rules(rule(self.cel(), self.message))

    def check(self, text: str) -> str:
        """The text; ValueError with the message if it is not of this form."""
        if not re.fullmatch(self.pattern, text):
            raise ValueError(self.message)
        return text

    def rule_for_keys(self) -> dict[str, str]:
        """The CEL rule of an object whose keys are of this form."""
        return rule(f"self.all(key, key.matches(r'^({self.pattern})$'))", self.message)

    def check_keys(self, found: dict[str, V]) -> dict[str, V]:
        """The object; ValueError with the message if a key is not of this form."""
        for key in found:
            self.check(key)
        return found


def compile_re2(pattern: str) -> Any:
    """The compiled RE2 expression; ValueError says what is wrong with it, or that it is too large."""
    if sum(map(pattern.count, (r"\p", r"\P"))) > _UNICODE_CLASSES:
        raise ValueError(f"has more than {_UNICODE_CLASSES} Unicode classes: topic names are ASCII")
    try:
        return re2.compile(pattern, _RE2_OPTIONS)
    except re2.error as error:
        reason = error.args[0] if error.args else error
        text = reason.decode() if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"is not a valid RE2 regular expression: {text}") from error


def _rate(value: object) -> int:
    rate = _quantity(value)
    if not 1 <= rate <= MAX_RATE:
        raise ValueError("must be a quantity of 1 to 1Pi bytes per second")
    return rate


def _rate_or_unset(value: object) -> int | None:
    if value is None or value == "-1" or (value == -1 and not isinstance(value, bool)):
        return None
    return _rate(value)


def _rate_override(value: object) -> int:
    return UNSET if _rate_or_unset(value) is None else _rate(value)


def _bytes(value: object) -> int:
    count = _quantity(value)
    if count < 1:
        raise ValueError("must be at least 1 byte")
    if count > MAX_BYTES:
        raise ValueError(f"must be at most {MAX_BYTES} bytes")
    return count


def _quantity(value: object) -> int:
    if isinstance(value, int | str):
        count = parse_quantity(value)
        if isinstance(value, int) or re.fullmatch(_QUANTITY, value):
            return count
    raise ValueError(f"{value!r} is not a quantity like 50Mi or 1048576")


def _seconds(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str) and re.fullmatch(_DURATION, value):
        return parse_duration(value)
    if info.mode == "json":
        raise ValueError(_NO_DURATION)
    return value


def _percentage(value: object, info: ValidationInfo) -> object:
    if isinstance(value, str) and re.fullmatch(r"([1-9][0-9]?|100)%", value):
        return int(value.removesuffix("%"))
    if info.mode == "json":
        raise ValueError(_NO_PERCENTAGE)
    return value


def _each_broker_once(values: tuple[int, ...]) -> tuple[int, ...]:
    if (twice := repeated(values)) is not None:
        raise ValueError(f"names broker {twice} twice")
    return values


def format_time(moment: datetime) -> str:
    """The time as Kubernetes writes it: UTC, whole seconds, ``Z``."""
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="seconds") + "Z"


def in_utc(moment: datetime) -> datetime:
    """The same time in UTC. ValueError without a zone, and for a time that does not exist in UTC.

    9999-12-31T23:59:59-23:59 is a valid time, but every conversion of it fails.
    """
    if moment.tzinfo is None:
        raise ValueError("must be a time with its zone, like 2026-03-04T14:00:00Z")
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise ValueError("must be a time that in UTC is within the years 1 to 9999") from error


def _rate_schema(int_rule: str, string_rule: str, message: str) -> dict[str, Any]:
    return {
        "x-kubernetes-int-or-string": True,
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "maxLength": 20,
        **rules(rule(f"type(self) == int ? {int_rule} : {string_rule}", message)),
    }


_SUFFIX = "(k|M|G|T|Ki|Mi|Gi|Ti)"
_QUANTITY = rf"[1-9][0-9]{{0,14}}{_SUFFIX}?|(0|[1-9][0-9]{{0,11}})\.[0-9]{{1,3}}{_SUFFIX}"
_IN_FORM = f"self.matches(r'^({_QUANTITY})$')"
_IN_RANGE = (
    f"{_IN_FORM} && quantity(self).compareTo(quantity('1')) >= 0 && quantity(self).compareTo(quantity('1Pi')) <= 0"
)
_DURATION = "(?=.*[1-9])([0-9]{1,3}d)?([0-9]{1,4}h)?([0-9]{1,5}m)?([0-9]{1,6}s)?"
_NO_DURATION = "must be a duration of at least 1s, like 15m, 1h30m or 2d"

Rate = Annotated[
    int,
    BeforeValidator(_rate),
    WithJsonSchema(
        _rate_schema(
            f"self >= 1 && self <= {MAX_RATE}",
            _IN_RANGE,
            "must be a quantity of 1 to 1Pi bytes per second, like 50Mi or 1048576",
        )
    ),
]
"""Bytes per second; written as a Kubernetes quantity or an integer."""

ByteCount = Annotated[
    int,
    BeforeValidator(_bytes),
    WithJsonSchema(
        _rate_schema(
            "self >= 1",
            # Strictly below: CEL caps larger binary quantities to this value, which no string of the form equals.
            f"{_IN_FORM} && quantity(self).compareTo(quantity('1')) >= 0"
            f" && quantity(self).compareTo(quantity('{MAX_BYTES}')) < 0",
            f"must be a quantity of 1 to {MAX_BYTES} bytes, like 5Ti or 1048576",
        )
    ),
]
"""Bytes; written as a Kubernetes quantity or an integer."""

_RATE_OR_UNSET = WithJsonSchema(
    _rate_schema(
        f"self == {UNSET} || (self >= 1 && self <= {MAX_RATE})",
        f"self == '{UNSET}' || ({_IN_RANGE})",
        "must be -1 (unset) or a quantity of 1 to 1Pi bytes per second, like 50Mi or 1048576",
    )
)
RateOrUnset = Annotated[int | None, BeforeValidator(_rate_or_unset), _RATE_OR_UNSET]
"""A KIP-542 rate: as ``Rate``; -1 means unset and becomes None."""

RateOverride = Annotated[int, BeforeValidator(_rate_override), _RATE_OR_UNSET]
"""As ``RateOrUnset``, but -1 stays ``UNSET``: an absent override means that the general rate applies."""

Seconds = Annotated[
    int,
    BeforeValidator(_seconds),
    Field(ge=1),
    WithJsonSchema(
        {
            "type": "string",
            "maxLength": 24,
            **rules(
                # RE2 has no lookahead.
                rule(
                    f"self.matches(r'^{_DURATION.removeprefix('(?=.*[1-9])')}$') && self.matches('[1-9]')", _NO_DURATION
                )
            ),
        }
    ),
]
"""Whole seconds; written like ``15m``, ``1h30m`` or ``2d``."""

_NO_PERCENTAGE = "must be a percentage from 1% to 100%, like 10%"

Percentage = Annotated[
    int,
    BeforeValidator(_percentage),
    Field(ge=1, le=100),
    WithJsonSchema(
        {"type": "string", "maxLength": 4, **rules(rule("self.matches(r'^([1-9][0-9]?|100)%$')", _NO_PERCENTAGE))}
    ),
]
"""Percent; written like ``10%``."""

Regex = Annotated[
    str,
    Field(min_length=1, max_length=MAX_REGEX),
    WithJsonSchema(
        {
            "type": "string",
            "minLength": 1,
            "maxLength": MAX_REGEX,
            # Both arms are true on purpose: evaluation fails, and so refuses, only where matches() cannot compile.
            **rules(rule("''.matches(self) ? true : true", "is not a valid RE2 regular expression")),
        }
    ),
]
"""An RE2 expression, as in CEL. It is compiled only where it is used, because that may take longer than all else."""

Regexes = Annotated[
    tuple[Regex, ...],
    Field(max_length=MAX_REGEXES, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
]

BrokerNumber = Annotated[int, Field(ge=0, le=MAX_INT32)]
_SET = {"x-kubernetes-list-type": "set"}
BrokerSet = Annotated[
    tuple[BrokerNumber, ...], Field(max_length=1000, json_schema_extra=_SET), AfterValidator(_each_broker_once)
]
"""Distinct broker ids."""

FewBrokers = Annotated[
    tuple[BrokerNumber, ...], Field(max_length=200, json_schema_extra=_SET), AfterValidator(_each_broker_once)
]
"""A ``BrokerSet`` that is short enough for a CEL rule to compare it with another one within the cost limit."""

SomeBrokers = Annotated[
    tuple[BrokerNumber, ...],
    Field(min_length=1, max_length=64, json_schema_extra=_SET),
    AfterValidator(_each_broker_once),
]
"""A ``BrokerSet`` with at least one id, short enough for a CEL rule to compare all pairs of ten."""

PositiveInt = Annotated[int, Field(ge=1, le=MAX_INT32)]

ObjectName = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Form(
        r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
        "must be the name of an object: lower case letters, digits, '-' and '.', with a letter or digit at both ends",
    ),
]
"""The name of a Kubernetes object."""

SecretKey = Annotated[
    str,
    Field(min_length=1, max_length=253),
    Form(r"[-._a-zA-Z0-9]+", "must be a key: letters, digits, '-', '_' and '.'"),
]

LogDirPath = Annotated[
    str, Field(min_length=2, max_length=1024), Form("/[^\\x00-\\x1f]+", "must be an absolute path, like /data/1")
]
"""The log dir of a broker."""

Timestamp = Annotated[
    datetime,
    AfterValidator(in_utc),
    PlainSerializer(format_time, return_type=str, when_used="json"),
    WithJsonSchema({"type": "string", "format": "date-time"}),
]
"""An aware time, in UTC; written with whole seconds."""
