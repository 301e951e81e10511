"""The permissions that the operator needs, and no others.

The manifests in ``deploy/`` and the chart grant exactly these; tests compare them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kafka_rebalance.api.v1alpha1 import CONNECTIONS, GROUP, REASSIGNMENT_THROTTLES, REBALANCES


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule as in RBAC. A subresource follows its resource: ``kafkarebalances/status``."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Right:
    """One verb on one resource. ``namespace`` None: in all namespaces, or for a cluster-scoped resource."""

    verb: str
    group: str
    resource: str
    namespace: str | None

    def __str__(self) -> str:
        """For messages, as kubectl names resources."""
        plural, _, subresource = self.resource.partition("/")
        what = ".".join(filter(None, (plural, self.group))) + (f"/{subresource}" if subresource else "")
        return f"{self.verb} {what}" + (f" in namespace {self.namespace}" if self.namespace else "")


_EVENTS = Rule("", ("events",), ("create",))

WATCHED: tuple[Rule, ...] = (
    Rule(GROUP, (REBALANCES, REASSIGNMENT_THROTTLES), ("get", "list", "watch", "patch")),  # patch: our finalizer
    Rule(GROUP, (REBALANCES,), ("delete",)),  # after spec.ttlSecondsAfterFinished
    Rule(GROUP, (CONNECTIONS,), ("list", "watch")),
    Rule(GROUP, tuple(f"{plural}/status" for plural in (CONNECTIONS, REBALANCES, REASSIGNMENT_THROTTLES)), ("patch",)),
    _EVENTS,
    Rule("", ("secrets",), ("get",)),  # those that a resource names; users choose the names
    Rule("", ("configmaps",), ("get",)),  # likewise, for the strategy Assignment
    Rule("", ("namespaces",), ("get",)),  # whether one is being deleted, and its labels, for spec.allowedNamespaces
)
"""In each namespace that is watched."""

EVERYWHERE: tuple[Rule, ...] = (
    # get: whether one is being deleted, with our resources; list, watch: for kopf, to notice when our CRDs come and go
    Rule("apiextensions.k8s.io", ("customresourcedefinitions",), ("get", "list", "watch")),
)
"""Cluster-wide, if all namespaces are watched."""

OWN: tuple[Rule, ...] = (
    Rule("", ("configmaps",), ("get", "list", "create", "update", "delete")),  # plans, origins, runs, ledgers
    Rule("coordination.k8s.io", ("leases",), ("get", "create", "update")),  # who leads
)
"""In the operator's own namespace."""

OWN_ALONE: tuple[Rule, ...] = (
    _EVENTS,  # about a resource whose namespace is being deleted
)
"""Also there, if single namespaces are watched."""

REPORTS: tuple[Rule, ...] = (
    Rule("authentication.k8s.io", ("tokenreviews",), ("create",)),  # whose token it is
    Rule("authorization.k8s.io", ("subjectaccessreviews",), ("create",)),  # whether that user may read the resource
)
"""Cluster-wide, if reports are served."""


def needed(namespaces: Sequence[str], own: str, *, reports: bool = False) -> tuple[Right, ...]:
    """All permissions of an operator that watches these namespaces (empty: all) and keeps its records in ``own``."""
    watched: Sequence[str | None] = namespaces or [None]
    rights = [right for place in watched for right in _in(place, WATCHED)]
    rights += _in(None, () if namespaces else EVERYWHERE)
    rights += _in(None, REPORTS if reports else ())
    rights += _in(own, OWN + (OWN_ALONE if namespaces else ()))
    return tuple(dict.fromkeys(rights))


def _in(namespace: str | None, rules: Sequence[Rule]) -> Iterator[Right]:
    for rule in rules:
        for resource in rule.resources:
            for verb in rule.verbs:
                yield Right(verb, rule.group, resource, namespace)
