"""Which batches follow each other: one sequence of samples out of those of several runs. Pure.

Two samplers of one cluster at the same time (a retried Pod) have different clocks: a pair of samples from both of them
would give a wrong rate. So at any time one run counts; the others' batches are left out until it has ended.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

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
    left = [[run[sequence] for sequence in sorted(run)] for run in runs.values()]
    while left:
        left.sort(key=lambda run: (run[0].sampled_at, -run[-1].sampled_at.timestamp(), run[0].run_id))
        run = left.pop(0)
        kept += run
        end = run[-1].sampled_at
        following = []
        for other in left:
            after = [batch for batch in other if batch.sampled_at > end]
            early = other[: len(other) - len(after)]
            dropped += early
            if after and early:
                breaks.append(after[0].sampled_at)
            if after:
                following.append(after)
        left = following
    return Chain(tuple(kept), tuple(sorted(breaks)), tuple(dropped))
