"""The options for the namespaces that an operator watches."""

import functools
import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

_Result = TypeVar("_Result")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def watched_namespaces(command: Callable[..., _Result]) -> Callable[..., _Result]:
    """``--namespace``, repeatable, or ``--all-namespaces``; the command gets ``namespaces``, empty for all."""

    @click.option(
        "--namespace",
        "namespaces",
        multiple=True,
        callback=_names,
        help="Namespace that the operator watches. May be repeated.",
    )
    @click.option("--all-namespaces", is_flag=True, help="The operator watches all namespaces.")
    @functools.wraps(command)
    def scoped(*arguments: object, namespaces: tuple[str, ...], all_namespaces: bool, **options: object) -> _Result:
        if bool(namespaces) == all_namespaces:
            raise click.UsageError("give either --namespace or --all-namespaces")
        return command(*arguments, namespaces=namespaces, **options)

    return scoped


def in_words(namespaces: Sequence[str]) -> str:
    """The namespaces as text."""
    if not namespaces:
        return "all namespaces"
    return f"namespace{'s' if len(namespaces) > 1 else ''} {', '.join(namespaces)}"


def _names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        # kopf would take it as a pattern, and the API server as a part of a path.
        if not _LABEL.fullmatch(name):
            raise click.BadParameter(f"{name!r} is not a valid namespace name", ctx, param)
    return tuple(dict.fromkeys(value))
