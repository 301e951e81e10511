"""Prints KafkaRebalances as rows, with the columns of `kubectl get`.

The rows are read from JSON: a resource whose spec this version cannot read is listed too.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from kafka_rebalance.api.conditions import ConditionType, find_condition
from kafka_rebalance.api.v1alpha1 import lenient_conditions
from kafka_rebalance.cli.tables.console import plain_console, plain_table
from kafka_rebalance.units import format_bytes, format_duration

_SHOWN_HASH = len("sha256:") + 12


def print_resources(
    found: Iterable[Mapping[str, Any]], now: datetime, *, namespaces: bool = False, wide: bool = False
) -> None:
    """One row for each. ``namespaces``: with their namespaces; ``wide``: also cluster and plan."""
    headers = ["NAME", "STATE", "PROGRESS", "MOVED", "ETA", "THROTTLE", "AGE"]
    table = plain_table(
        *(["NAMESPACE"] if namespaces else []), *headers, *(["CLUSTER", "MOVES", "BYTES", "PLAN"] if wide else [])
    )
    for body in found:
        metadata, status = body["metadata"], body.get("status") or {}
        display, plan = status.get("display") or {}, status.get("plan") or {}
        ready = find_condition(lenient_conditions(status), ConditionType.READY)
        age = now - datetime.fromisoformat(metadata["creationTimestamp"])
        row = [metadata["name"], ready.reason if ready else "Pending"]
        row += [display.get(field) or "-" for field in ("progress", "moved", "eta", "throttle")]
        row += [format_duration(age.total_seconds())]
        if wide:
            moves = (str(plan["replicaMoves"]), format_bytes(plan["dataToMove"])) if plan else ("-", "-")
            row += [status.get("clusterId") or "-", *moves, plan.get("hash", "-")[:_SHOWN_HASH]]
        table.add_row(*([metadata["namespace"]] if namespaces else []), *row)
    plain_console().print(table)
