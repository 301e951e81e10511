"""Lines of text for people, and of JSON for collectors."""

import json
import logging
import re

import pytest
from structlog.contextvars import bound_contextvars

from kafka_rebalance.telemetry.audit_log import audited
from kafka_rebalance.telemetry.logs import configure_logging

log = logging.getLogger("kafka_rebalance.somewhere")


@pytest.fixture
def written(capsys):
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield lambda: capsys.readouterr().err
    root.handlers[:], root.level = handlers, level


def fail():
    try:
        int("no")
    except ValueError:
        log.exception("unexpected")


class TestText:
    def test_a_line(self, written):
        """Time, level, logger, message; fields are left out, because the message names what it is about."""
        configure_logging("info")
        with bound_contextvars(cluster="c"):
            log.info("%s: waits", "kafka/r", extra={"resource": "kafka/r"})
        log.debug("not at this level")
        assert re.fullmatch(
            r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ INFO    kafka_rebalance.somewhere: kafka/r: waits\n", written()
        )

    def test_a_library_at_a_higher_level(self, written):
        """It is limited to warnings, and to errors if only errors are wanted."""
        library = logging.getLogger("kafka.net.selector")
        configure_logging("debug")
        library.info("a request")
        library.warning("a late answer")
        assert "a late answer" in (shown := written())
        assert "a request" not in shown
        configure_logging("error")
        library.warning("a late answer")
        logging.getLogger("aiohttp").warning("a late answer")
        assert written() == ""

    def test_a_traceback(self, written):
        configure_logging("info")
        fail()
        text = written()
        assert "ERROR   kafka_rebalance.somewhere: unexpected\n  Traceback (most recent" in text
        assert text.endswith("'no'\n")

    def test_names_cannot_write_lines(self, written):
        """Names and messages of a Kafka server are in the log: they forge no other line, and control no terminal."""
        configure_logging("info")
        log.warning("%s: gone", "t\n2026-01-01T00:00:00Z INFO    kafka_rebalance.audit: \x1b[2J\u202eö")
        audited("elect_preferred", "t\rx-0", "OK", {"topic": "t\rx"})
        first, second, end = written().split("\n")
        assert not end
        assert first.endswith(r": t\n2026-01-01T00:00:00Z INFO    kafka_rebalance.audit: \x1b[2J\u202eö: gone")
        assert second.endswith(r"elect_preferred t\rx-0: OK call=elect_preferred answer=OK topic=t\rx")

    def test_errors_cannot_write_lines(self, written):
        """The text of an error may be that of a server: each line of a traceback is indented and escaped."""
        configure_logging("info")
        forged = ValueError("\n2026-01-01T00:00:00Z INFO    kafka_rebalance.audit: x\r\x1b[2J\u2028y")
        log.error("unexpected", exc_info=forged)
        first, *rest = written().split("\n")
        assert first.endswith("unexpected")
        assert rest == [
            "  ValueError: ",
            r"  2026-01-01T00:00:00Z INFO    kafka_rebalance.audit: x\r\x1b[2J\u2028y",
            "",
        ]

    def test_the_audit_log_has_its_fields(self, written):
        configure_logging("info")
        with bound_contextvars(resource="kafka/r"):
            audited("elect_preferred", "t-0", "OK", {"topic": "t", "partition": 0})
        line = written()
        assert "kafka_rebalance.audit: elect_preferred t-0: OK resource=kafka/r" in line
        assert "topic=t partition=0" in line


class TestJson:
    def test_a_line(self, written):
        """The usual fields first, then those that are bound, and those of the line."""
        configure_logging("debug", as_json=True)
        with bound_contextvars(cluster="c"):
            log.debug("%s: waits", "kafka/r", extra={"resource": "kafka/r"})
        line = json.loads(written())
        assert list(line)[:4] == ["timestamp", "level", "logger", "message"]
        assert line["message"] == "kafka/r: waits"
        assert (line["cluster"], line["resource"], line["level"]) == ("c", "kafka/r", "debug")

    def test_a_traceback_is_one_line(self, written):
        configure_logging("info", as_json=True)
        fail()
        line = json.loads(written())
        assert line["exception"].endswith("'no'")

    def test_libraries_do_not_log_requests(self, written):
        """Even at debug level: they would log headers."""
        configure_logging("debug", as_json=True)
        for name in ("kopf", "kubernetes.client.rest", "urllib3.connectionpool", "aiohttp.client"):
            logging.getLogger(name).debug("Authorization: Bearer x")
            logging.getLogger(name).info("request")
        assert written() == ""
