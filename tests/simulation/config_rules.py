"""Which config values brokers accept, and which they hide.

The rules are those of `tests/contract/test_configs.py` and `tests/contract/test_cordon.py`.
"""

import re

from tests.contract.differences import CORDONED_LOG_DIRS

from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, RATE_NAMES
from kafka_rebalance.kafka.ports import ConfigOp

CORDONED = "cordoned.log.dirs"
_KNOWN = {*LIST_NAMES, *RATE_NAMES, CORDONED, "min.insync.replicas", "retention.ms", "log.dirs"}
_ENTRIES = re.compile(r"\*|(\d+:\d+(,\d+:\d+)*)?")


def is_hidden(name, line):
    """Brokers hide the value of a config that they do not know (`TestRates`, `test_cordon.py::TestConfig`)."""
    return name not in _KNOWN or (name == CORDONED and line < CORDONED_LOG_DIRS)


def refusal(change, line, paths):
    """The error for a change of a topic or of a broker with these log dirs; None if it is accepted."""
    if change.op not in {ConfigOp.SET, ConfigOp.APPEND}:
        return None
    if change.name in LIST_NAMES and not _ENTRIES.fullmatch(change.value):
        return "INVALID_CONFIG: no list of replicas"
    if change.name in RATE_NAMES and not change.value.isdecimal():
        return "INVALID_REQUEST: no rate"
    if change.name == CORDONED and not is_hidden(CORDONED, line) and not {change.value} <= {"*", *paths}:
        return "INVALID_CONFIG: the log dirs must be present in log.dirs"
    return None
