"""The audit log: one line for each change that was ordered in Kafka, with its answer.

Which resource asked for it, and by which plan, is in the fields that the engine binds around the call.
"""

import logging
from collections.abc import Mapping

AUDIT = "kafka_rebalance.audit"
_log = logging.getLogger(AUDIT)
_LONGEST = 300
"""Characters of a value: a list of throttled replicas may have a hundred times as many."""


def audited(call: str, what: str, answer: str, fields: Mapping[str, object]) -> None:
    """Log one change. ``what``: the partition, replica, broker or topic; ``answer``: Kafka's, or why there is none."""
    shown = {name: _short(value) for name, value in fields.items()}
    _log.info("%s %s: %s", call, what, answer, extra={"call": call, "answer": answer, **shown})


def _short(value: object) -> object:
    if isinstance(value, str) and len(value) > _LONGEST:
        return f"{value[:_LONGEST]}… ({len(value)} characters)"
    return value
