"""The errors of the project, which the process that makes a plan passes back to the operator's."""

import pickle

import pytest

from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict


class TestMessage:
    def test_it_controls_no_terminal(self) -> None:
        """It quotes names of servers, and values of resources and files."""
        assert Refused("SomeReason", "topic \x1b]0;x\x07,\nline").message == "topic \\x1b]0;x\\x07,\nline"

    def test_it_has_a_limit(self) -> None:
        """It is kept for each resource and logged, and values that people write have any length."""
        assert len(Refused("SomeReason", "x" * 8_000).message) == 8_000
        assert Refused("SomeReason", "x" * 8_001).message == "x" * 7_999 + "…"
        assert len(Refused("SomeReason", "\U0001f600\x7f" * 1_000_000).message) == 8_000


class TestPickling:
    """A plan is made in a child process: what it raises arrives as it was raised."""

    @pytest.mark.parametrize(
        "error",
        [
            RebalanceError("SomeReason", "some message"),
            Transient("SomeReason", "some message", retry_after=7.0),
            Permanent("SomeReason", "some message"),
            Refused("SomeReason", "some message"),
            Conflict("some message"),
        ],
    )
    def test_everything_arrives(self, error: RebalanceError) -> None:
        arrived = pickle.loads(pickle.dumps(error))
        assert type(arrived) is type(error)
        assert vars(arrived) == vars(error)
        assert (str(arrived), arrived.args) == (str(error), error.args)
