"""Which batches follow each other: one sequence of samples out of those of several runs. Pure.

Two samplers of one cluster at the same time (a retried Pod) have different clocks: a pair of samples from both of them
would give a wrong rate. So at any time one run counts; the others' batches are left out until it has ended.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from heapq import heapify, heappop, heappush

from kafka_rebalance.pipeline.sample_manifests import StoredBatch


@dataclass(frozen=True, slots=True)
class Chain:
    """``batches`` in order. ``breaks`` are times: no rate is computed across one. ``dropped``: left out."""

    batches: tuple[StoredBatch, ...]
    breaks: tuple[datetime, ...]
    dropped: tuple[StoredBatch, ...]


def chain(batches: Iterable[StoredBatch]) -> Chain:
    """The run that begins first counts until it ends, then the one that begins next, and so on.

    A run that began before the previous one ended is compared with nothing before it: one of the clocks may be wrong.
    """
    runs: dict[str, dict[int, StoredBatch]] = defaultdict(dict)
    for batch in batches:
        runs[batch.run_id].setdefault(batch.sequence, batch)  # a batch may be stored twice
    kept: list[StoredBatch] = []
    breaks: list[datetime] = []
    dropped: list[StoredBatch] = []
    left = [_next([run[sequence] for sequence in sorted(run)], 0) for run in runs.values()]
    heapify(left)
    while left:
        *_, run, begin = heappop(left)
        kept += run[begin:]
        end = run[-1].sampled_at
        while left and left[0][0] <= end:
            *_, other, at = heappop(left)
            after = max(at + 1, bisect_right(other, end, at, key=_sampled_at))
            dropped += other[at:after]
            if after < len(other):
                breaks.append(other[after].sampled_at)
                heappush(left, _next(other, after))
    return Chain(tuple(kept), tuple(sorted(breaks)), tuple(dropped))


def _next(run: list[StoredBatch], begin: int) -> tuple[datetime, float, str, list[StoredBatch], int]:
    """The batches of a run from ``begin`` on, as an entry of the heap: the run that begins first, of these the longest.

    Of each run it has one, so that lists are not compared.
    """
    return run[begin].sampled_at, -run[-1].sampled_at.timestamp(), run[begin].run_id, run, begin


def _sampled_at(batch: StoredBatch) -> datetime:
    return batch.sampled_at
