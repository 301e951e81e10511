"""The local search: the broker that is the furthest outside gives away load, for the most relief per byte.

Three steps: a leader hands over (no bytes), a replica goes to a broker with fewer replicas where that keeps counts as
even, and two replicas are exchanged. Effort is counted and never timed.
"""

import numpy as np

from kafka_rebalance.planning.load.array_types import Floats, Ints
from kafka_rebalance.planning.load.compiled import compiled
from kafka_rebalance.planning.load.load_state import (
    TINY,
    LoadArrays,
    LoadState,
    add_use,
    draw,
    fits,
    hand_over,
    is_leader,
    new_bytes,
    relocate,
    revalue,
    value_with,
)

_PAUSE = 50
"""Steps during which a broker is left out that found nothing to give away."""

_WORTH = 1e-3
"""The part of a broker's value that a step has to remove, at least."""

_PARTNER = 0.1
"""About what the replica that comes in exchange takes, as a part of the mean size."""

_NOTHING, _HANDOVER, _MOVE, _SWAP = 0, 1, 2, 3

_TOPS = 8
"""Replicas of the broker that are tried with every partner."""


@compiled
def _handover(
    a: LoadArrays, s: LoadState, hot: int, samples: int, floor: float, least: float
) -> tuple[float, int, int, int, int]:
    """The best leadership to hand over: score, kind, slot, -1, and broker."""
    best, kind, best_slot, best_broker = 0.0, _NOTHING, -1, -1
    if a.keep_leaders:
        return best, kind, best_slot, -1, best_broker
    out, into = np.zeros(s.use.shape[1]), np.zeros(s.use.shape[1])
    whole = samples >= s.held[hot]
    for i in range(min(samples, s.held[hot])):
        slot = int(s.member[hot, i if whole else draw(s.luck, s.held[hot])])
        p = a.partition[slot]
        if not is_leader(a, slot):
            continue
        for x in range(a.start[p] + 1, a.start[p + 1]):
            b = int(s.lists[x])
            if not a.eligible[b]:
                continue
            for r in range(len(out)):
                out[r], into[r] = -a.leads[p, r] * a.inverse[hot, r], a.leads[p, r] * a.inverse[b, r]
            gain = s.value[hot] + s.value[b] - value_with(a, s.use, hot, out) - value_with(a, s.use, b, into)
            if gain > least and gain > best * floor:
                best, kind, best_slot, best_broker = gain / floor, _HANDOVER, x, b
    return best, kind, best_slot, -1, best_broker


@compiled
def _tops(
    a: LoadArrays, s: LoadState, hot: int, samples: int, least: float, largest: bool
) -> tuple[Ints, Floats, Floats]:
    """The sampled replicas that relieve this broker most (see `give`), what their leaving changes [_TOPS, R], and by
    how much it lowers the broker's value at most: when nothing comes in exchange.

    Each is the best of its own part of the samples, so that they differ.
    """
    partner = _PARTNER * a.mean_size
    tops, scores, most = np.full(_TOPS, -1, dtype=np.int64), np.zeros(_TOPS), np.zeros(_TOPS)
    relief = np.zeros((_TOPS, s.use.shape[1]))
    out = np.zeros(s.use.shape[1])
    whole = samples >= s.held[hot]
    for i in range(min(samples, s.held[hot])):
        slot = int(s.member[hot, i if whole else draw(s.luck, s.held[hot])])
        p = a.partition[slot]
        out[:] = 0.0
        add_use(a, p, hot, is_leader(a, slot), -1.0, out)
        gain = s.value[hot] - value_with(a, s.use, hot, out)
        t = i % _TOPS
        score = gain if largest else gain / (max(a.size[p] - new_bytes(a, p, hot), 0.0) + partner)
        if gain > least and score > scores[t]:
            tops[t], scores[t] = slot, score
            relief[t] = out
            most[t] = gain
    return tops, relief, most


@compiled
def _partner(a: LoadArrays, s: LoadState, hot: int, top: int) -> tuple[int, int]:
    """A broker, rather one within its bands, and one of its replicas, rather a small one."""
    brokers = len(s.value)
    if a.by_topic:
        if top < 0:
            return -1, -1
        topic = a.topic[a.partition[top]]
        begin = a.start[a.topic_start[topic]]
        q = begin + draw(s.luck, a.start[a.topic_start[topic + 1]] - begin)
        return int(s.lists[q]), int(q)
    b, other = draw(s.luck, brokers), draw(s.luck, brokers)
    if not a.eligible[b] or b == hot or (a.eligible[other] and other != hot and s.value[other] < s.value[b]):
        b = other
    if not s.held[b]:
        return b, -1
    q = int(s.member[b, draw(s.luck, s.held[b])])
    for _ in range(3):
        x = int(s.member[b, draw(s.luck, s.held[b])])
        if a.size[a.partition[x]] < a.size[a.partition[q]]:
            q = x
    return b, q


@compiled
def give(a: LoadArrays, s: LoadState, hot: int, samples: int, largest: bool) -> bool:
    """Carry out the best of some steps that relieve this broker; False if none was found.

    Tried are the replicas that relieve it most per byte, or with ``largest`` those that relieve it most.
    """
    floor = 1e-3 * a.mean_size
    least = TINY + _WORTH * s.value[hot]
    best, kind, best_slot, best_other, best_broker = _handover(a, s, hot, samples, floor, least)
    tops, relief, most = _tops(a, s, hot, samples, least, largest)
    leaves, arrives = np.zeros(s.use.shape[1]), np.zeros(s.use.shape[1])
    out, into = np.zeros(s.use.shape[1]), np.zeros(s.use.shape[1])
    for _ in range(samples):
        b, q = _partner(a, s, hot, tops[draw(s.luck, _TOPS)])
        if b < 0 or b == hot or not a.eligible[b] or s.held[b] == s.member.shape[1]:
            continue
        other_leads, other_cost = False, 0.0
        if q >= 0:
            other_leads = is_leader(a, q)
            leaves[:] = 0.0
            arrives[:] = 0.0
            add_use(a, a.partition[q], b, other_leads, -1.0, leaves)
            add_use(a, a.partition[q], hot, other_leads, 1.0, arrives)
            other_cost = new_bytes(a, a.partition[q], hot) - new_bytes(a, a.partition[q], b)
        for t in range(_TOPS):
            slot = tops[t]
            if slot < 0 or most[t] <= best * floor:
                continue
            p, leads = a.partition[slot], is_leader(a, slot)
            fetched = new_bytes(a, p, b) - new_bytes(a, p, hot)
            free = s.replicas[hot] > s.replicas[b] and not a.by_topic and not (leads and a.keep_leaders)
            for what in (_MOVE, _SWAP):
                cost = fetched
                if what == _SWAP:
                    if q < 0 or (a.keep_leaders and leads != other_leads):
                        continue
                    if a.by_topic and a.topic[p] != a.topic[a.partition[q]]:
                        continue
                    cost += other_cost
                elif a.keep_counts and not free:
                    continue
                if s.spent[0] + cost > a.most_bytes or most[t] <= best * max(cost, floor):
                    continue
                into[:] = 0.0
                add_use(a, p, b, leads, 1.0, into)
                for r in range(len(out)):
                    out[r] = relief[t, r]
                    if what == _SWAP:
                        out[r] += arrives[r]
                        into[r] += leaves[r]
                gain = s.value[hot] - value_with(a, s.use, hot, out)
                if gain <= least or gain <= best * max(cost, floor):
                    continue
                gain += s.value[b] - value_with(a, s.use, b, into)
                if gain <= least or gain <= best * max(cost, floor):
                    continue
                if fits(a, s, slot, b) and (what == _MOVE or (a.partition[q] != p and fits(a, s, q, hot))):
                    best, kind, best_slot, best_other, best_broker = gain / max(cost, floor), what, slot, q, b
    if kind == _NOTHING:
        return False
    if kind == _HANDOVER:
        hand_over(a, s, best_slot)
    else:
        relocate(a, s, best_slot, best_broker)
        if kind == _SWAP:
            relocate(a, s, best_other, hot)
        if s.spent[1] > a.most_moves:
            relocate(a, s, best_slot, hot)
            if kind == _SWAP:
                relocate(a, s, best_other, best_broker)
            return False
    revalue(a, s, hot)
    revalue(a, s, best_broker)
    return True


@compiled
def relieve(a: LoadArrays, s: LoadState, most_effort: int, samples: int, most_samples: int) -> int:
    """Steps until no broker is outside, none finds one with ``most_samples`` samples, or the effort (the sum of all
    samples) is spent; returns the number of steps."""
    paused = np.zeros(len(s.value), dtype=np.int64)
    turn, done, effort, largest = 0, 0, 0, False
    while effort < most_effort:
        turn += 1
        hot, most, outside = -1, TINY, False
        for b in range(len(s.value)):
            if s.value[b] > TINY:
                outside = True
                if paused[b] <= turn and s.value[b] > most:
                    hot, most = b, s.value[b]
        if not outside:
            break
        if hot < 0:
            if samples < most_samples:
                samples *= 4
            elif not largest:
                largest = True  # per byte, small replicas look best, and exchanges of these may lead nowhere
            else:
                break
            paused[:] = 0
            continue
        effort += samples
        if give(a, s, hot, samples, largest):
            done += 1
        else:
            paused[hot] = turn + (_PAUSE if samples < most_samples else most_effort)
    return done
