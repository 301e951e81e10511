"""Clusters to plan, as arrays: a balanced start and a change to it. Seeded, so that runs are comparable."""

from dataclasses import dataclass

import numpy as np

from kafka_rebalance.model.goals import RackAwareness
from kafka_rebalance.planning.problem.instance import Instance, encode

NO_RACK = -1


@dataclass(frozen=True)
class Cluster:
    """``rf`` [P]; ``lists`` [N]: brokers 0..B-1, concatenated; ``racks`` [B], or NO_RACK; ``targets`` [B]: eligible."""

    rf: np.ndarray
    lists: np.ndarray
    racks: np.ndarray
    targets: np.ndarray

    def instance(self) -> Instance:
        """The planner's input."""
        racks = [None if rack == NO_RACK else f"rack-{rack}" for rack in self.racks.tolist()]
        return encode(racks, self.targets, self.rf, self.lists, RackAwareness.ENFORCED)


def balanced(rf: np.ndarray, racks: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Replica lists [N]: replicas in different racks, even counts within each rack, random leaders."""
    names, sizes = np.unique(racks, return_counts=True)
    even = bool((sizes == sizes[0]).all())
    order = rng.random((len(rf), len(names)))
    if even:
        order[np.arange(len(rf)), np.arange(len(rf)) % len(names)] = -1  # every rack comes first equally often
    else:
        order /= sizes  # larger racks are selected more often
    chosen = np.argsort(order, axis=1)
    inside = np.arange(len(names)) < rf[:, None]
    lists = np.full(chosen.shape, -1, dtype=np.int64)
    for index, name in enumerate(names):
        row, column = np.nonzero((chosen == index) & inside)
        members = np.flatnonzero(racks == name)
        shuffled = rng.permutation(len(row))
        lists[row[shuffled], column[shuffled]] = members[np.arange(len(row)) % len(members)]
    place = np.where(inside, rng.random(chosen.shape), 2.0)
    return np.take_along_axis(lists, np.argsort(place, axis=1), axis=1)[inside]


def cluster(what: str, partitions: int, brokers: int, racks: int = 5, seed: int = 0) -> Cluster:
    """A cluster after the change ``what``; see ``SCENARIOS``."""
    rng = np.random.default_rng(seed)
    rf = rng.integers(1, 5, partitions) if what == "mixed" else np.full(partitions, 3)
    rack_of = np.arange(brokers) % racks
    if what == "uneven":
        rack_of = np.array([0, 1, 0, 2, 0, 3, 0])[np.arange(brokers) % 7]
    lists = balanced(rf, rack_of, rng)
    targets = np.ones(brokers, dtype=bool)
    tenth = -(-max(1, brokers // 10) // racks) * racks
    if what in {"add", "mixed", "uneven"}:
        rack_of, targets = _more(rack_of, targets, rack_of[:tenth])
    elif what == "no racks":
        rack_of, targets = _more(rack_of, targets, rack_of[:tenth])
        rack_of = np.full(len(rack_of), NO_RACK)
    elif what == "rack":
        rack_of, targets = _more(rack_of, targets, np.full(brokers // racks, racks))
    elif what == "replace":
        rack_of, targets = _more(rack_of, targets, rack_of[:1])
        targets[0] = False
    elif what == "remove":
        targets[:tenth] = False
    elif what == "drift":
        lists = _drifted(lists.reshape(partitions, -1), brokers, rng).ravel()
    elif what == "leaders":
        lists = np.sort(lists.reshape(partitions, -1), axis=1).ravel()
    else:
        raise ValueError(f"unknown: {what}")
    return Cluster(rf.astype(np.int64), lists, rack_of, targets)


SCENARIOS = {
    "add": "a tenth more brokers, in the existing racks",
    "remove": "a tenth of the brokers is decommissioned at once",
    "replace": "one broker is replaced by a new one in the same rack",
    "rack": "one more rack, of as many brokers as the others have",
    "drift": "a fifth of the replicas is on random brokers, some of which are more likely, regardless of racks",
    "leaders": "every list is sorted: replicas are nearly even, leaders are not",
    "mixed": "`add`, with replication factors of 1 to 4",
    "uneven": "`add`, with racks of 4 : 1 : 1 : 1; the large one is filled to the limit of the rack rule",
    "no racks": "`add`, without racks",
}


def _more(rack_of: np.ndarray, targets: np.ndarray, racks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.append(rack_of, racks), np.append(targets, np.ones(len(racks), dtype=bool))


def _drifted(lists: np.ndarray, brokers: int, rng: np.random.Generator) -> np.ndarray:
    likely = rng.dirichlet(np.full(brokers, 2.0))
    strayed = np.where(rng.random(lists.shape) < 0.2, rng.choice(brokers, lists.shape, p=likely), lists)
    ordered = np.sort(strayed, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    strayed[twice] = lists[twice]
    return strayed
