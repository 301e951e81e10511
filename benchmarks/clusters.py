"""Clusters to plan, as arrays: a balanced start, and what happens to it. Seeded, so everyone times the same ones."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Cluster:
    """``lists`` [P, RF] of brokers 0..B-1, ``racks`` [B], ``targets`` [B]: which of them may hold replicas."""

    lists: np.ndarray
    racks: np.ndarray
    targets: np.ndarray


def balanced(partitions: int, brokers: int, racks: int, rf: int, rng: np.random.Generator) -> np.ndarray:
    """Replicas in different racks, counts even, leaders by chance."""
    order = rng.random((partitions, racks))
    order[np.arange(partitions), np.arange(partitions) % racks] = -1  # every rack is first equally often
    chosen = np.argsort(order, axis=1)[:, :rf]
    lists = np.empty((partitions, rf), dtype=np.int64)
    for rack in range(racks):
        row, column = np.nonzero(chosen == rack)
        members = np.arange(rack, brokers, racks)
        shuffled = rng.permutation(len(row))
        lists[row[shuffled], column[shuffled]] = members[np.arange(len(row)) % len(members)]
    return rng.permuted(lists, axis=1)


def cluster(what: str, partitions: int, brokers: int, racks: int = 5, rf: int = 3, seed: int = 0) -> Cluster:
    """``what``: add (a tenth more brokers), remove (a tenth), rack (one more rack), drift (a fifth of the replicas are
    anywhere, some brokers likelier than others, racks not looked at)."""
    rng = np.random.default_rng(seed)
    lists = balanced(partitions, brokers, racks, rf, rng)
    rack_of, targets = np.arange(brokers) % racks, np.ones(brokers, dtype=bool)
    if what == "add":
        more = -(-max(1, brokers // 10) // racks) * racks
        rack_of, targets = np.append(rack_of, np.arange(more) % racks), np.ones(brokers + more, dtype=bool)
    elif what == "remove":
        targets[: -(-max(1, brokers // 10) // racks) * racks] = False
    elif what == "rack":
        more = brokers // racks
        rack_of, targets = np.append(rack_of, np.full(more, racks)), np.ones(brokers + more, dtype=bool)
    elif what == "drift":
        likely = rng.dirichlet(np.full(brokers, 2.0))
        strayed = np.where(rng.random(lists.shape) < 0.2, rng.choice(brokers, lists.shape, p=likely), lists)
        ordered = np.sort(strayed, axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        strayed[twice] = lists[twice]
        lists = strayed
    else:
        raise ValueError(f"unknown: {what}")
    return Cluster(lists, rack_of, targets)
