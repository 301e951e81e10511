"""The errors of the project, which the process that makes a plan passes back to the operator's."""

import pickle

import pytest

from kafka_rebalance.errors import Permanent, RebalanceError, Refused, Transient
from kafka_rebalance.kube.api_errors import Conflict


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
