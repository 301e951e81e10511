"""Validates values from JSON and YAML against the API models, as strictly as the schema of the CRDs does."""

import json
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from kafka_rebalance.api.fields import ApiModel
from kafka_rebalance.errors import Refused
from kafka_rebalance.reasons import Reason

_Model = TypeVar("_Model", bound=ApiModel)


def validate(model: type[_Model], value: Any, path: str) -> _Model:
    """The value as a model. Refused("InvalidSpec") names each wrong field below ``path``.

    Types are strict: ``"5"`` is not an integer. ValueError where the value cannot be written as JSON.
    """
    try:
        # Through JSON, where lists are tuples and enums are strings also for a strict model.
        # Names as in YAML only: the Python names are for our own code.
        return model.model_validate_json(json.dumps(value, allow_nan=False), strict=True, by_alias=True, by_name=False)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_context=False)
        lines = [f"{_path(path, problem['loc'])}: {_sentence(problem)}" for problem in problems]
        raise Refused(Reason.INVALID_SPEC, "; ".join(dict.fromkeys(lines))) from error


def without_nulls(value: Any) -> Any:
    """The value as the API server reads it: a field that is null is absent."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def _path(start: str, loc: tuple[int | str, ...]) -> str:
    path = start + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return path.removeprefix(".")


def _sentence(problem: ErrorDetails) -> str:
    if problem["type"] == "extra_forbidden":
        return "unknown field"
    message, found = problem["msg"].removeprefix("Value error, "), f"{problem['input']!r:.60}"
    shown = isinstance(problem["input"], str | int) and found not in message
    return f"{message}, found {found}" if shown else message
