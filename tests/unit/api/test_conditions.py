"""The condition setter."""

from datetime import UTC, datetime, timedelta

import pytest

from kafka_rebalance.api.conditions import (
    ConditionType,
    ReadySummary,
    find_condition,
    remove_condition,
    set_condition,
    summarise,
)
from kafka_rebalance.api.resource_status import MAX_CONDITIONS, MAX_MESSAGE, Condition, ResourceStatus
from kafka_rebalance.reasons import Reason

T0 = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)
T1 = T0 + timedelta(minutes=5)


class TestSetCondition:
    """lastTransitionTime changes only with the status; order and time resolution are fixed."""

    def test_time_stays_while_the_status_does(self) -> None:
        first = set_condition((), ConditionType.READY, False, Reason.PLANNING, "", generation=1, now=T0)
        second = set_condition(first, ConditionType.READY, False, Reason.REBALANCING, "on", generation=2, now=T1)
        (ready,) = second
        assert (ready.reason, ready.message, ready.observed_generation) == ("Rebalancing", "on", 2)
        assert ready.last_transition_time == T0.replace(microsecond=0)
        (done,) = set_condition(second, ConditionType.READY, True, Reason.SUCCEEDED, "", generation=2, now=T1)
        assert done.last_transition_time == T1.replace(microsecond=0)

    def test_order(self) -> None:
        result: tuple[Condition, ...] = ()
        for kind in reversed(ConditionType):
            result = set_condition(result, kind, None, Reason.PENDING, "", generation=1, now=T0)
        assert [condition.type for condition in result] == list(ConditionType)
        assert {condition.status for condition in result} == {"Unknown"}

    def test_written_in_seconds(self) -> None:
        (ready,) = set_condition((), ConditionType.READY, True, Reason.SUCCEEDED, "", generation=1, now=T0)
        assert ready.model_dump(mode="json", by_alias=True)["lastTransitionTime"] == "2026-01-01T12:00:00Z"

    def test_long_messages_are_cut(self) -> None:
        """The API server would reject the whole status."""
        (ready,) = set_condition((), ConditionType.READY, False, Reason.STALLED, "x" * 9999, generation=1, now=T0)
        assert len(ready.message) == MAX_MESSAGE

    def test_conditions_of_others_leave_room(self) -> None:
        """The API server and the model would reject a status with too many conditions."""
        theirs = [
            Condition(
                type=f"example.com/{n}", status="True", reason="Theirs", observed_generation=1, last_transition_time=T0
            )
            for n in range(MAX_CONDITIONS)
        ]
        result = tuple(theirs)
        for kind in ConditionType:
            result = set_condition(result, kind, None, Reason.PENDING, "", generation=1, now=T0)
        assert len(ResourceStatus(conditions=result).conditions) == MAX_CONDITIONS
        assert [condition.type for condition in result][: len(ConditionType)] == list(ConditionType)

    def test_remove(self) -> None:
        one = set_condition((), ConditionType.DRAINED, True, Reason.DRAINED, "", generation=1, now=T0)
        assert find_condition(one, ConditionType.DRAINED) is not None
        assert remove_condition(one, ConditionType.DRAINED) == ()


class TestSummarise:
    """kstatus reads Ready, Reconciling and Stalled together, so they must never contradict each other."""

    @pytest.mark.parametrize("verdict", ReadySummary)
    def test_exactly_one_is_true(self, verdict: ReadySummary) -> None:
        result = summarise((), verdict, Reason.STALLED, "why", generation=1, now=T0)
        assert [condition.type for condition in result] == ["Ready", "Reconciling", "Stalled"]
        assert [condition.status for condition in result].count("True") == 1
        assert {condition.reason for condition in result} == {"Stalled"}
