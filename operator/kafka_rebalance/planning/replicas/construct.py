"""Fast construction: assigns copies to the counts of the outline, many at a time, in rounds.

Each round offers every copy that must move one broker that lacks copies, and carries out what the rack rule allows. A
copy leaves its group only when no broker in its group lacks one. A few rounds leave a handful of copies, which
``exchange`` places with chains of moves.
"""

import numpy as np

from kafka_rebalance.planning.problem.copies import UNASSIGNED, Copies, first_of_each, in_order, rank_within, scramble
from kafka_rebalance.planning.problem.instance import Bools, Instance, Ints
from kafka_rebalance.planning.replicas.outline import Outline

_ROUNDS = 40
_STALLED = 3
"""After this many rounds in a row that place less than 2 % of the copies, chains do the rest."""


def construct(instance: Instance, plan: Outline) -> Copies:
    """Copies with (nearly) the outline's counts and moves; every copy has a broker and no rule is violated."""
    copies = Copies(instance, plan.leaving)
    _assign(copies, plan)
    _shed(copies, plan)
    return copies


def _assign(copies: Copies, plan: Outline) -> None:
    """Give each unassigned copy a broker that lacks copies; as a last resort any broker that may take it."""
    slots = plan.leaving
    lack = plan.target - copies.counts()
    stalled = 0
    for turn in range(_ROUNDS):
        if not len(slots) or not (lack > 0).any() or stalled == _STALLED:
            break
        done = _offer(copies, slots, lack, turn)
        stalled = stalled + 1 if done.sum() * 50 < len(slots) else 0
        slots = slots[~done]
    for slot in slots.tolist():
        _assign_anywhere(copies, slot, plan.target)


def _assign_anywhere(copies: Copies, slot: int, target: Ints) -> None:
    """The broker that may take it and is the least above its target; ``_shed`` moves the surplus on."""
    brokers = np.flatnonzero(copies.instance.eligible)
    open_to = brokers[copies.fits(np.full(len(brokers), slot), brokers)]
    above = (copies.counts() - target)[open_to]
    copies.broker_of_slot[slot] = open_to[np.argmin(above)]


def _shed(copies: Copies, plan: Outline) -> None:
    """Move surplus copies to brokers that lack copies, within groups first."""
    instance = copies.instance
    groups = len(instance.group_size)
    lack = plan.target - copies.counts()
    stalled = 0
    for turn in range(_ROUNDS):
        surplus, wanted = np.maximum(-lack, 0), np.maximum(lack, 0)
        total = int(surplus.sum())
        if not total or stalled == _STALLED:
            break
        slots = _candidates(copies, surplus, turn)
        group = instance.group[copies.broker_of_slot[slots]]
        lacking = np.bincount(instance.group[instance.eligible], wanted[instance.eligible], minlength=groups)
        held_before = rank_within(group) < lacking[group]
        done = np.zeros(len(slots), dtype=np.bool_)
        done[held_before] = _offer(copies, slots[held_before], lack, turn, own_group=True)
        done[~held_before] = _offer(copies, slots[~held_before], lack, turn)
        stalled = stalled + 1 if done.sum() * 50 < total else 0


def _candidates(copies: Copies, surplus: Ints, turn: int) -> Ints:
    """About as many slots per broker as its surplus, at most one per partition, followers before leaders."""
    instance = copies.instance
    slots = np.flatnonzero((surplus > 0)[copies.broker_of_slot])
    cell = 2 * copies.broker_of_slot[slots] + (instance.position[slots] == 0)
    followers, leaders = np.bincount(cell, minlength=2 * instance.brokers).reshape(-1, 2).T
    patience = turn // 4  # a broker whose followers found no broker offers leaders too
    want_leaders = np.maximum(surplus - followers, 0) + patience * surplus // 4
    odds_follower = surplus * 1.1 / np.maximum(followers, 1)
    odds_leader = want_leaders * 1.1 / np.maximum(leaders, 1)
    few = surplus <= 4  # with a small surplus all are candidates, and the lowest draws are taken
    odds_follower[few] = 1
    odds_leader[few & (odds_leader > 0)] = 1
    below = np.stack((odds_follower, odds_leader), axis=1).ravel() * 2.0**32
    luck = scramble(slots, turn)
    chosen = np.flatnonzero(luck < below[cell])
    chosen = chosen[in_order(luck[chosen])]
    chosen = chosen[in_order(copies.broker_of_slot[slots[chosen]])]
    slots = slots[chosen]
    slots = slots[first_of_each(instance.partition_of_slot[slots], len(instance.rf))]
    broker_of = copies.broker_of_slot[slots]
    return slots[rank_within(broker_of) < surplus[broker_of]]


def _offer(copies: Copies, slots: Ints, lack: Ints, turn: int, *, own_group: bool = False) -> Bools:
    """Move each slot's copy to a broker that lacks copies, if the rules allow; returns which were moved.

    Updates ``lack`` [B], the copies that each broker lacks (negative: its surplus).
    """
    instance = copies.instance
    done = np.zeros(len(slots), dtype=np.bool_)
    wanted = np.maximum(lack, 0)
    brokers = np.flatnonzero(wanted)
    if not len(slots) or not len(brokers):
        return done
    lacking = np.bincount(instance.group[brokers], wanted[brokers], minlength=len(instance.group_size)).astype(np.int64)
    group = instance.group[copies.broker_of_slot[slots]] if own_group else _choose_group(copies, slots, lacking, turn)
    # The places that lack a copy, group by group, brokers of a group in scrambled order.
    places = np.repeat(brokers, wanted[brokers])
    place_group = instance.group[places]
    places = places[np.lexsort((scramble(np.arange(len(places)), turn), place_group))]
    begin = np.cumsum(lacking) - lacking
    rank = rank_within(group)
    served = np.flatnonzero((group >= 0) & (rank < lacking[group]))
    target = places[(begin[group] + rank)[served]]
    fits = copies.fits(slots[served], target)
    # ``fits`` looks at one copy at a time, so only the first copy of each partition moves in this round.
    accepted = served[fits]
    first = first_of_each(instance.partition_of_slot[slots[accepted]], len(instance.rf))
    accepted, target = accepted[first], target[fits][first]
    before = copies.broker_of_slot[slots[accepted]]
    lack += np.bincount(before[before != UNASSIGNED], minlength=instance.brokers)
    lack -= np.bincount(target, minlength=instance.brokers)
    copies.broker_of_slot[slots[accepted]] = target
    done[accepted] = True
    return done


def _choose_group(copies: Copies, slots: Ints, lacking: Ints, turn: int) -> Ints:
    """For each slot a group with capacity, weighted by the copies that it lacks; -1 if there is none."""
    chosen = np.full(len(slots), UNASSIGNED, dtype=np.int64)
    wants = np.flatnonzero(lacking)
    size = max(1, 2**22 // len(lacking))
    for at in range(0, len(slots), size):
        piece = slots[at : at + size]
        weight = np.cumsum(copies.open_groups(piece)[:, wants] * lacking[wants], axis=1)
        total = weight[:, -1]
        point = scramble(piece, turn + 7919).astype(np.int64) * total >> 32
        chosen[at : at + size] = np.where(total > 0, wants[(weight > point[:, None]).argmax(axis=1)], UNASSIGNED)
    return chosen
