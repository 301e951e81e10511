"""What the operator's account has to be allowed: nothing that no line of code asks for, nothing less.

The manifests in ``deploy/`` and the chart grant exactly this, and tests hold them to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_rebalance.api.v1alpha1 import GROUP, REASSIGNMENT_THROTTLES, REBALANCES


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as RBAC writes it. A subresource is written behind its resource: ``kafkarebalances/status``."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource. ``namespace`` None: in all of them, or on what has none."""

    verb: str
    group: str
    resource: str
    namespace: str | None

    def __str__(self) -> str:
        """For people, as kubectl names resources."""
        plural, _, subresource = self.resource.partition("/")
        what = ".".join(filter(None, (plural, self.group))) + (f"/{subresource}" if subresource else "")
        return f"{self.verb} {what}" + (f" in namespace {self.namespace}" if self.namespace else "")


_EVENTS = Rule("", ("events",), ("create",))

WATCHED: tuple[Rule, ...] = (
    Rule(GROUP, (REBALANCES, REASSIGNMENT_THROTTLES), ("get", "list", "watch", "patch")),  # patch: our finalizer
    Rule(GROUP, (f"{REBALANCES}/status", f"{REASSIGNMENT_THROTTLES}/status"), ("patch",)),
    _EVENTS,
    Rule("", ("secrets",), ("get",)),  # those that a resource names; their names are the users' choice
    Rule("", ("configmaps",), ("get",)),  # likewise: the lists of the strategy Assignment
    Rule("", ("namespaces",), ("get",)),  # whether one is being deleted, and our resources with it
)
"""In each namespace that is watched."""

EVERYWHERE: tuple[Rule, ...] = (
    # get: whether one is being deleted, and our resources with it; the others: kopf notices that our kinds come and go
    Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch")),
)
"""Where all namespaces are watched."""

OWN: tuple[Rule, ...] = (
    Rule("", ("configmaps",), ("get", "list", "create", "update", "delete")),  # plans, origins, runs, ledgers
    Rule("coordination.k8s.io", ("leases",), ("get", "create", "update")),  # who leads
)
"""In the operator's own namespace."""

OWN_ALONE: tuple[Rule, ...] = (
    _EVENTS,  # about what was left of a resource whose namespace takes nothing new
)
"""Also there, where single namespaces are watched."""


def needed(namespaces: Sequence[str], own: str) -> tuple[Right, ...]:
    """Every right of an operator that watches these namespaces (none: all) and keeps its records in ``own``."""
    watched: Sequence[str | None] = namespaces or [None]
    rights = [right for place in watched for right in _in(place, WATCHED)]
    rights += _in(None, () if namespaces else EVERYWHERE)
    rights += _in(own, OWN + (OWN_ALONE if namespaces else ()))
    return tuple(dict.fromkeys(rights))


def _in(namespace: str | None, rules: Sequence[Rule]) -> Iterator[Right]:
    for rule in rules:
        for resource in rule.resources:
            for verb in rule.verbs:
                yield Right(verb, rule.group, resource, namespace)
