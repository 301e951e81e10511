"""A new plan stays in doubt as long as what it continues is.

What it inherits is in ``test_engine_inheritance``, ``test_engine_inherited_origins`` and ``test_engine_last_success``.
"""

from dataclasses import replace

import pytest
from tests.fakes.stopped_clock import NOON

from kafka_rebalance.model.run import Run
from kafka_rebalance.reconcile.runs.earlier_runs import EarlierWork

RUN = Run("u", "kafka", "u", "c", "run", "planning", "plan", NOON, started_at=NOON)
DOUBTED = replace(RUN, unproved=True)
DOUBTED_ONCE = replace(RUN, was_unproved=True)


def work(begun=None, *taken):
    return EarlierWork(None, begun, (), taken, {}, {}, (), {}, {})


@pytest.mark.parametrize(
    ("found", "unproved", "was_unproved"),
    [
        (work(), False, False),
        (work(RUN, RUN), False, False),
        (work(DOUBTED), True, False),
        (work(None, RUN, DOUBTED), True, False),
        (work(DOUBTED_ONCE), False, True),
        (work(None, RUN, DOUBTED_ONCE), False, True),
    ],
    ids=["nothing", "others", "its own", "taken over", "its own, once", "taken over, once"],
)
def test_the_doubt_of_any_run_counts(found, unproved, was_unproved):
    """Its own run that the plan continues, and those that it takes over."""
    assert (found.unproved, found.was_unproved) == (unproved, was_unproved)
