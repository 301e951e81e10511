"""The progress of a rebalance on a terminal."""

import sys

import pytest
from tests.unit.cli.commands.status_runs import NOW, resource

from kafka_rebalance.api.conditions import ReadySummary, summarise
from kafka_rebalance.api.resource_status import KafkaRebalanceStatus
from kafka_rebalance.api.v1alpha1 import parse_rebalance
from kafka_rebalance.cli.tables.progress_screen import ProgressScreen
from kafka_rebalance.reasons import Reason

HOSTILE = "[/x]\x1b]0;y\x07"
SHOWN = "[/x]\\x1b]0;y\\x07"


@pytest.mark.parametrize("terminal", [True, False])
def test_messages_control_no_terminal(capsys, monkeypatch, terminal) -> None:
    """Messages are not read as markup: they quote the spec, which another user may have written."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    conditions = summarise((), ReadySummary.IN_PROGRESS, Reason.QUEUED, HOSTILE, generation=1, now=NOW)
    status = KafkaRebalanceStatus(observed_generation=1, conditions=conditions)
    with ProgressScreen() as screen:
        screen.show(parse_rebalance(resource(status=status.model_dump(by_alias=True, mode="json"))))
        screen.end(f"ended: {HOSTILE}")
    printed = capsys.readouterr().out
    assert f"ended: {SHOWN}" in printed
    assert "\x07" not in printed
    assert "\x1b]" not in printed
