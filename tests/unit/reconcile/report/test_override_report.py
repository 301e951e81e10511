"""Overrides in the status of a resource."""

from datetime import UTC, datetime

from kafka_rebalance.api.overrides import OverrideInForce
from kafka_rebalance.reconcile.report.override_report import override_rows, with_overrides

NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)
SUSPENDED = OverrideInForce("spec.suspend", "true", datetime(2026, 3, 4, 14, tzinfo=UTC), "disk of 4")


def test_rows():
    (row,) = override_rows([SUSPENDED])
    assert row.model_dump(by_alias=True) == {
        "setting": "spec.suspend",
        "value": "true",
        "until": SUSPENDED.until,
        "reason": "disk of 4",
    }


class TestCondition:
    def test_in_force(self):
        """The condition shows the value and its end, and the annotations that have no effect."""
        (found,) = with_overrides([], [SUSPENDED], ["x cannot be read"], generation=1, now=NOON)
        assert (found.type, found.status) == ("Overridden", "True")
        assert found.message == (
            "spec.suspend is true until 2026-03-04T14:00:00Z (disk of 4); x cannot be read; it has no effect"
        )

    def test_only_problems(self):
        (found,) = with_overrides([], [], ["x cannot be read"], generation=1, now=NOON)
        assert (found.status, found.reason) == ("False", "OverrideInvalid")

    def test_absent_without_overrides(self):
        before = with_overrides([], [SUSPENDED], [], generation=1, now=NOON)
        assert with_overrides(before, [], [], generation=1, now=NOON) == ()
