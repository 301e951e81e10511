"""What goes wrong for one resource: reported on that resource and retried later, while the others go on."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from kafka_rebalance.clock import Clock
from kafka_rebalance.errors import RebalanceError, Transient, without_traceback
from kafka_rebalance.reasons import Reason
from kafka_rebalance.reconcile.act.resources import UNEXPECTED
from kafka_rebalance.reconcile.state.memory import Problem
from kafka_rebalance.reconcile.state.rebalance import Rebalance

log = logging.getLogger(__name__)

_REFUSED_SECONDS = 15.0
_SOONEST_SECONDS = 0.5


class Problems:
    """Keeps the present problem of each rebalance in its ``memory``."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    @asynccontextmanager
    async def problems_of(self, rebalance: Rebalance, stage: str) -> AsyncIterator[None]:
        """Report what goes wrong for one resource on that resource, and retry later; the others go on.

        The problem of a stage stays on the status until the same stage has succeeded, or has ``nothing_to_do``.
        """
        try:
            yield
        except RebalanceError as error:
            log.warning("%s: %s: %s", rebalance.name, error.reason, error.message, extra=rebalance.log_fields)
            self._note(rebalance, stage, error)
        except Exception:
            log.exception("%s: unexpected error", rebalance.name, extra=rebalance.log_fields)
            unexpected = Transient(Reason.INTERNAL_ERROR, UNEXPECTED, 15.0)
            self._note(rebalance, stage, unexpected)
        else:
            rebalance.memory = rebalance.memory.done_with(stage)

    def nothing_to_do(self, rebalance: Rebalance, stage: str) -> None:
        """What went wrong in this stage before is over: there is nothing left to retry."""
        if not rebalance.memory.blocked(self._clock.monotonic()):
            rebalance.memory = rebalance.memory.done_with(stage)

    def waits_for_its_turn(self, rebalance: Rebalance, stage: str) -> None:
        """The stage is not retried for now. A passing problem is over; what a person must mend stays on the status."""
        problem = rebalance.memory.problem
        if problem is not None and isinstance(problem.error, Transient):
            self.nothing_to_do(rebalance, stage)

    def _note(self, rebalance: Rebalance, stage: str, error: RebalanceError) -> None:
        rebalance.memory = replace(rebalance.memory, problem=Problem(stage, without_traceback(error)))
        again = error.retry_after if isinstance(error, Transient) else _REFUSED_SECONDS
        self.retry_in(rebalance, max(again, _SOONEST_SECONDS))

    def retry_in(self, rebalance: Rebalance, seconds: float) -> None:
        """Do not prepare or plan before that."""
        rebalance.memory = replace(rebalance.memory, retry_at=self._clock.monotonic() + seconds)
