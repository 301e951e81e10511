"""The namespaces and the operator of one pytest worker, so that workers can share an API server.

An operator watches the namespaces of its lane only, like one that a team installs for itself. Without workers there is
one lane with the names of the shipped manifests, and its operator watches all namespaces.
"""

import os

from e2e.bench.operator import NAMESPACE as SHIPPED_NAMESPACE

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

NAMESPACE = f"lane-{_WORKER}" if _WORKER else "default"
"""Namespace of the tests' resources."""
TEAM = f"team-{_WORKER}" if _WORKER else "team"
"""A second watched namespace, for a test that deletes it."""
OPERATOR_NAMESPACE = f"{SHIPPED_NAMESPACE}-{_WORKER}" if _WORKER else SHIPPED_NAMESPACE
"""Namespace of the operator's records and its Lease."""
WATCHED = ("--namespace", NAMESPACE, "--namespace", TEAM) if _WORKER else ("--all-namespaces",)
"""Command-line options of the operator."""
