"""The pass after the search: moves that are not needed are taken back, or made by smaller partitions."""

import numpy as np

from kafka_rebalance.planning.load.array_types import Ints
from kafka_rebalance.planning.load.compiled import compiled
from kafka_rebalance.planning.load.load_state import (
    TINY,
    LoadArrays,
    LoadState,
    add_use,
    draw,
    fits,
    hand_over,
    home_of,
    is_leader,
    new_bytes,
    relocate,
    revalue,
    value_with,
)


@compiled
def take_back(a: LoadArrays, s: LoadState, moved: Ints, samples: int) -> int:
    """Send copies in these slots home, where no value rises and fewer bytes move; returns how many."""
    done = 0
    out, into = np.zeros(s.use.shape[1]), np.zeros(s.use.shape[1])
    goes, comes = np.zeros(s.use.shape[1]), np.zeros(s.use.shape[1])
    for slot in moved:
        p, here = a.partition[slot], s.lists[slot]
        if home_of(a, p, here) >= 0 or not a.eligible[here]:
            continue
        best, best_home, best_other = -1e-9, -1, -1
        leads = is_leader(a, slot)
        for h in range(a.home_start[p], a.home_start[p + 1]):
            home = a.homes[h]
            if not a.eligible[home] or home == here or s.held[home] == s.member.shape[1]:
                continue
            if not fits(a, s, slot, home):
                continue
            goes[:] = 0.0
            comes[:] = 0.0
            add_use(a, p, here, leads, -1.0, goes)
            add_use(a, p, home, leads, 1.0, comes)
            for i in range(-1, samples):
                q, cost = -1, -a.size[p]
                if i < 0:
                    free = s.replicas[here] > s.replicas[home] and not a.by_topic and not (leads and a.keep_leaders)
                    if a.keep_counts and not free:
                        continue
                else:
                    if not s.held[home] or (samples > s.held[home] and i >= s.held[home]):
                        break
                    q = s.member[home, i if samples > s.held[home] else draw(s.luck, s.held[home])]
                    other = a.partition[q]
                    if other == p or (a.by_topic and a.topic[p] != a.topic[other]):
                        continue
                    if a.keep_leaders and leads != is_leader(a, q):
                        continue
                    cost += new_bytes(a, other, here) - new_bytes(a, other, home)
                if cost >= best:
                    continue
                out[:] = goes
                into[:] = comes
                if q >= 0:
                    add_use(a, a.partition[q], home, is_leader(a, q), -1.0, into)
                    add_use(a, a.partition[q], here, is_leader(a, q), 1.0, out)
                if value_with(a, s.use, here, out) > s.value[here] + TINY:
                    continue
                if value_with(a, s.use, home, into) > s.value[home] + TINY:
                    continue
                if q < 0 or fits(a, s, q, here):
                    best, best_home, best_other = cost, home, q
        if best_home >= 0:
            relocate(a, s, slot, best_home)
            if best_other >= 0:
                relocate(a, s, best_other, here)
            revalue(a, s, here)
            revalue(a, s, best_home)
            done += 1
    return done


@compiled
def lead_again(a: LoadArrays, s: LoadState) -> int:
    """Give leaderships back to the present leaders where no value rises; returns how many."""
    done = 0
    out, into = np.zeros(s.use.shape[1]), np.zeros(s.use.shape[1])
    for p in range(len(a.size)):
        first, leader = a.start[p], s.lists[a.start[p]]
        for x in range(first + 1, a.start[p + 1]):
            b = s.lists[x]
            if b != a.homes[a.home_start[p]] or leader == b or not a.eligible[b]:
                continue
            for r in range(len(out)):
                out[r], into[r] = -a.leads[p, r] * a.inverse[leader, r], a.leads[p, r] * a.inverse[b, r]
            if value_with(a, s.use, b, into) <= s.value[b] + TINY:
                hand_over(a, s, x)
                revalue(a, s, leader)
                revalue(a, s, b)
                done += 1
            break
    return done
