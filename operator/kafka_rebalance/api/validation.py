"""Validates values from JSON and YAML against the API models, as strictly as the schema of the CRDs does."""

import json
import re
from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kafka_rebalance.api.fields import ApiModel
from kafka_rebalance.errors import Refused
from kafka_rebalance.reasons import Reason

_Model = TypeVar("_Model", bound=ApiModel)
_SENTENCES = {
    "missing": "is required",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "int_from_float": "must be an integer",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be an object",
    "enum": "must be {expected}",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "string_too_short": "must not be empty",
    "too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "too_long": "must have at most {max_length} entries",
}
"""Pydantic's types of errors in the words of our messages."""


def validate(model: type[_Model], value: Any, path: str) -> _Model:
    """The value as a model. Refused("InvalidSpec") names each wrong field below ``path``.

    Types are strict: ``"5"`` is not an integer. ValueError where the value cannot be written as JSON.
    """
    try:
        # Through JSON, where lists are tuples and enums are strings also for a strict model.
        # Names as in YAML only: the Python names are for our own code.
        return model.model_validate_json(json.dumps(value, allow_nan=False), strict=True, by_alias=True, by_name=False)
    except RecursionError as error:
        raise Refused(Reason.INVALID_SPEC, f"{path}: is nested too deeply") from error
    except ValidationError as error:
        problems = _first_causes(error.errors(include_url=False))
        if any(_exceeds_the_depth_of_the_parser(problem) for problem in problems):
            raise Refused(Reason.INVALID_SPEC, f"{path}: is nested too deeply") from error
        lines = [f"{_path(path, problem['loc'])}: {_sentence(model, problem)}" for problem in problems]
        raise Refused(Reason.INVALID_SPEC, "; ".join(dict.fromkeys(lines))) from error


def _exceeds_the_depth_of_the_parser(problem: ErrorDetails) -> bool:
    """Whether pydantic's parser gave up at its own depth, 200 levels, which json.dumps may write without an error."""
    return problem["type"] == "json_invalid" and "recursion limit" in problem["msg"]


def _first_causes(problems: list[ErrorDetails]) -> list[ErrorDetails]:
    """Remove the errors about lists that are too short only because pydantic does not count invalid entries."""
    within = {problem["loc"][:depth] for problem in problems for depth in range(len(problem["loc"]))}
    return [problem for problem in problems if problem["type"] != "too_short" or problem["loc"] not in within]


def without_nulls(value: Any) -> Any:
    """The value as the API server reads it: a field that is null is absent."""
    if isinstance(value, dict):
        return {key: without_nulls(part) for key, part in value.items() if part is not None}
    return [without_nulls(part) for part in value] if isinstance(value, list) else value


def _path(start: str, loc: tuple[int | str, ...]) -> str:
    path = start + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in loc)
    return path.removeprefix(".")


def _sentence(model: type[BaseModel], problem: ErrorDetails) -> str:
    kind, context, found = problem["type"], problem.get("ctx", {}), f"{problem['input']!r:.60}"
    if kind == "extra_forbidden":
        return _unknown_field(str(problem["loc"][-1]), _fields_at(model, problem["loc"][:-1]))
    if kind == "model_type":
        message = f"must be an object with {', '.join(_fields_at(model, problem['loc']))}"
    elif kind in _SENTENCES:
        message = _SENTENCES[kind].format(**context)
        if kind == "string_type" and not isinstance(problem["input"], dict | list):
            message += ": put it in quotes"
        elif kind == "int_type":
            message += _not_a_number(problem["input"])
    else:
        message = problem["msg"].removeprefix("Value error, ")
    shown = isinstance(problem["input"], str | int) and found not in message
    return f"{message}, found {found}" if shown else message


def _not_a_number(found: object) -> str:
    """What to write instead of a percentage or a range, which similar fields of other resources take."""
    text = found if isinstance(found, str) else ""
    if re.fullmatch(r"\d+%", text):
        return ", not a percentage"
    return ": list each number of a range" if re.fullmatch(r"\d+-\d+", text) else ""


def _unknown_field(name: str, known: Collection[str]) -> str:
    similar = get_close_matches(name, known, 1)
    return "unknown field; " + (f"did you mean {similar[0]}?" if similar else f"known are {', '.join(known)}")


def _fields_at(model: type[BaseModel], loc: Iterable[int | str]) -> list[str]:
    """The names in YAML of the fields of the model in this place."""
    for part in loc:
        if isinstance(part, str):
            field = next(
                field for field in model.model_fields.values() if part in {field.alias, field.validation_alias}
            )
            model = next(_models_in(field.annotation))
    return [str(field.validation_alias) for field in model.model_fields.values()]


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)
