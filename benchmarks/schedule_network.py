"""The network between brokers as a fluid: copies share the rates of their two ends fairly, in virtual time."""

from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

_STEP = 1.05
"""Ends whose shares differ by less than this are filled together."""
_NOTHING = 1.0
"""Bytes that count as none."""


class Network:
    """Copies in progress. ``rate``: bytes per second that each broker may send, and as many that it may receive.

    A partition arrives when all its copies are complete.
    """

    def __init__(self, brokers: int, rate: float) -> None:
        self.now = 0.0
        self._rate = np.full(2 * brokers, float(rate))
        self._brokers = brokers
        self._ends: NDArray[np.int64] = np.zeros((2, 0), np.int64)
        self._left: NDArray[np.float64] = np.zeros(0)
        self._key: NDArray[np.int64] = np.zeros(0, np.int64)
        self._keys: dict[int, Hashable] = {}
        self._copies: dict[int, int] = {}
        self._number = 0
        self._speed: NDArray[np.float64] | None = None

    def start(self, key: Hashable, source: int, destinations: Sequence[int], size: float) -> None:
        """Begin the copies of a partition."""
        self.start_all([(key, source, destinations, size)])

    def start_all(self, copies: Iterable[tuple[Hashable, int, Sequence[int], float]]) -> None:
        """Begin the copies of several partitions."""
        sources, ends, left, keys = list[int](), list[int](), list[float](), list[int]()
        for key, source, destinations, size in copies:
            self._number += 1
            self._keys[self._number] = key
            self._copies[self._number] = len(destinations)
            sources += [source] * len(destinations)
            ends += [self._brokers + b for b in destinations]
            left += [max(size, _NOTHING)] * len(destinations)
            keys += [self._number] * len(destinations)
        self._ends = np.hstack([self._ends, np.array([sources, ends], np.int64)])
        self._left = np.append(self._left, left)
        self._key = np.append(self._key, np.array(keys, np.int64))
        self._speed = None

    @property
    def idle(self) -> bool:
        """Whether nothing is being copied."""
        return not len(self._left)

    @property
    def next_arrival(self) -> float:
        """When the next copy is complete, if no other begins."""
        return self.now + float((self._left / self._speeds()).min())

    def run(self, until: float) -> list[Hashable]:
        """Let time pass; the partitions that arrived, in this order."""
        arrived: list[Hashable] = []
        while not self.idle and self.now < until:
            speed = self._speeds()
            took = min(float((self._left / speed).min()) * (1 + 1e-9), until - self.now)
            self.now += took
            self._left = self._left - speed * took
            done = self._left <= _NOTHING
            if done.any():
                for number in self._key[done].tolist():
                    self._copies[number] -= 1
                    if not self._copies[number]:
                        del self._copies[number]
                        arrived.append(self._keys.pop(number))
                self._ends, self._left, self._key = self._ends[:, ~done], self._left[~done], self._key[~done]
                self._speed = None
        self.now = max(self.now, until)
        return arrived

    def _speeds(self) -> NDArray[np.float64]:
        """Bytes per second of each copy, max-min fair: the ends with the smallest share are filled first."""
        if self._speed is not None:
            return self._speed
        speed = np.zeros(len(self._left))
        room, open_ = self._rate.copy(), np.arange(len(self._left))
        while len(open_):
            ends = self._ends[:, open_]
            count = np.bincount(ends.ravel(), minlength=len(room))
            share = np.full(len(room), np.inf)
            np.divide(room, count, out=share, where=count > 0)
            lowest = share[ends].min(axis=0)
            full = lowest <= lowest.min() * _STEP
            speed[open_[full]] = lowest[full]
            np.subtract.at(room, ends[:, full].ravel(), np.tile(lowest[full], 2))
            np.maximum(room, 1e-9, out=room)
            open_ = open_[~full]
        self._speed = speed
        return speed
