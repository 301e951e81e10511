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

    def test_a_traceback(self, written):
        configure_logging("info")
        fail()
        text = written()
        assert "ERROR   kafka_rebalance.somewhere: unexpected\nTraceback (most recent" in text
        assert text.endswith("'no'\n")

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
