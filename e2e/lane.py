"""What belongs to one pytest worker: namespaces, and in them an operator, so that workers share an API server.

An operator watches its lane's namespaces only, as one that a team installs for itself. Without workers there is one
lane with the names of the shipped manifests, and its operator watches all namespaces.
"""

import os

from e2e.bench.operator import NAMESPACE as SHIPPED_NAMESPACE

_WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")

NAMESPACE = f"lane-{_WORKER}" if _WORKER else "default"
"""Where the tests' resources are."""
TEAM = f"team-{_WORKER}" if _WORKER else "team"
"""One more that the operator watches, for a test that deletes it."""
OPERATOR_NAMESPACE = f"{SHIPPED_NAMESPACE}-{_WORKER}" if _WORKER else SHIPPED_NAMESPACE
"""Where the operator keeps its records and its lease."""
WATCHED = ("--namespace", NAMESPACE, "--namespace", TEAM) if _WORKER else ("--all-namespaces",)
"""The operator's options."""
