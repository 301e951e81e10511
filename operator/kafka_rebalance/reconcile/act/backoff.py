"""When to try again what has failed: a broker that does not answer, an object that cannot be written.

So that it rarely costs its time-out.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from kafka_rebalance.errors import RebalanceError, Transient

K = TypeVar("K", bound=int | str)
"""The broker, or the uid of the object."""

FIRST_SECONDS = 1.0
LONGEST_SECONDS = 60.0


def _longer(pause: float) -> float:
    """The pause after another failure in a row."""
    return min(2 * pause, LONGEST_SECONDS)


def lengthen(error: Transient, before: RebalanceError | None) -> None:
    """Let the pause after this error be twice that after the last one, if that was transient too."""
    if isinstance(before, Transient):
        error.retry_after = max(error.retry_after, _longer(before.retry_after))


@dataclass
class Backoff(Generic[K]):
    """Doubles the pause of a broker or object with each failure in a row, up to ``LONGEST_SECONDS``."""

    monotonic: Callable[[], float]
    _until: dict[K, float] = field(default_factory=dict)
    _pause: dict[K, float] = field(default_factory=dict)

    def due(self, all_of_them: Iterable[K]) -> list[K]:
        """Those that may be tried now, sorted."""
        now = self.monotonic()
        return sorted(one for one in all_of_them if self._until.get(one, now) <= now)

    def has_failed(self, one: K) -> bool:
        """Whether the last try has failed."""
        return one in self._pause

    def failed(self, one: K) -> None:
        """It did not answer, or refused."""
        pause = _longer(self._pause.get(one, FIRST_SECONDS / 2))
        self._pause[one] = pause
        self._until[one] = self.monotonic() + pause

    def succeeded(self, one: K) -> None:
        """It answered."""
        self._until.pop(one, None)
        self._pause.pop(one, None)

    def forget_all_but(self, kept: Collection[K]) -> None:
        """The others are not tried any more."""
        self._until = {one: at for one, at in self._until.items() if one in kept}
        self._pause = {one: pause for one, pause in self._pause.items() if one in kept}
