"""One line per event on stderr: text for people, or JSON for log collectors. No line has Secrets: `kafka.settings`.

A JSON line has the fields that are bound around it (cluster, resource, generation, plan), and its own fields. A line of
text has them only in the audit log, because other messages name the resource or the cluster.
"""

import logging
import sys
from collections.abc import MutableMapping
from typing import Any

from kafka_rebalance.printable_text import printable
from kafka_rebalance.telemetry.audit_log import AUDIT

_NOISY = ("kafka", "kopf", "urllib3", "kubernetes", "asyncio", "aiohttp")
_OF_A_LINE = ("timestamp", "level", "logger", "event", "exception")


def configure_logging(level: str, *, as_json: bool = False) -> None:
    """Set up the root logger. Libraries that log every request write warnings, or errors if ``level`` is error."""
    import structlog

    fields: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.stdlib.ExtraAdder(),
        structlog.processors.TimeStamper("iso" if as_json else "%Y-%m-%dT%H:%M:%SZ", utc=True),
        structlog.processors.format_exc_info,
    ]
    rendered: list[structlog.typing.Processor] = [structlog.stdlib.ProcessorFormatter.remove_processors_meta]
    if as_json:
        order = ["timestamp", "level", "logger", "message"]
        rendered += [structlog.processors.EventRenamer("message"), _Ordered(order), structlog.processors.JSONRenderer()]
    else:
        rendered += [_as_text]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(foreign_pre_chain=fields, processors=rendered))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in _NOISY:
        logging.getLogger(noisy).setLevel(max(logging.WARNING, logging.getLogger().level))
    # It warns that signals are ignored outside the main thread, which is intended.
    logging.getLogger("kopf._core.reactor.running").setLevel(logging.ERROR)


class _Ordered:
    """Puts these fields first, for readers."""

    def __init__(self, first: list[str]) -> None:
        self._first = first

    def __call__(self, _logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        known = {name: line[name] for name in self._first if name in line}
        return {**known, **{name: value for name, value in line.items() if name not in known}}


def _as_text(_logger: Any, _method: str, line: MutableMapping[str, Any]) -> str:
    text = f"{line['timestamp']} {line['level'].upper():7} {line['logger']}: {line['event']}"
    if line["logger"] == AUDIT:
        text += "".join(f" {name}={value}" for name, value in line.items() if name not in _OF_A_LINE)
    return "\n".join((printable(text), *_traceback_lines(line.get("exception") or "")))


def _traceback_lines(traceback: str) -> list[str]:
    """Indented: an error may have any text of a server, also line breaks, and none may look like a line of the log."""
    return [f"  {printable(line)}" for line in traceback.split("\n")] if traceback else []
