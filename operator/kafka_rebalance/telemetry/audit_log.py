"""The audit log: one line for each change that the operator sends to Kafka, with the answer.

The engine binds the resource and the plan around the call, as fields of the line.
"""

import logging
from collections.abc import Mapping

AUDIT = "kafka_rebalance.audit"
_log = logging.getLogger(AUDIT)
_LONGEST = 300
"""Characters of a value. A list of throttled replicas, or the text of a server, may have a hundred times as many."""


def audited(call: str, what: str, answer: str, fields: Mapping[str, object]) -> None:
    """Log one change. ``what``: the partition, replica, broker or topic; ``answer``: Kafka's, or why there is none."""
    shown = {name: _short(value) for name, value in {"call": call, "answer": answer, **fields}.items()}
    _log.info("%s %s: %s", call, what, shown["answer"], extra=shown)


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}… ({len(value)} characters)"
    return value
