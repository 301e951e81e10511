"""One step of one partition: KIP-435's increments, in calls that real brokers carry out safely. Pure.

The rules look only at the present list, never at earlier calls: after a crash, or half way through a step, they give
the rest of the same step. So a step's two calls (add, then remove and reorder) need no memory between them: from the
list that the first call leaves, the next step is the second call.

1. If R covers all replicas to add and to drop, one step leads to the target.
2. A new leader is added first, with what ``min.insync.replicas`` lacks; only lost replicas are dropped.
3. A new leader that is in sync leads before any copy.
4. Otherwise at most R replicas are dropped and at most R added, only up to the replication factor or min ISR. Enough
   replicas stay in sync, and one of them is alive.
5. The replicas of the target stand in its order, in front of the rest in the present order.
6. A call that Kafka would not complete is not sent: the partition waits.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from kafka_rebalance.model.bulk import made_in_bulk
from kafka_rebalance.model.topology import BrokerId, Replicas
from kafka_rebalance.reasons import Reason


@made_in_bulk
@dataclass(frozen=True, slots=True)
class Alter:
    """Submit ``replicas``; complete when ``until_in_sync`` are in the ISR (empty: at once)."""

    replicas: Replicas
    until_in_sync: Replicas = ()


@dataclass(frozen=True, slots=True)
class Elect:
    """Preferred leader election; ``leader`` is first in the list and in sync."""

    leader: BrokerId


Call = Alter | Elect


@dataclass(frozen=True, slots=True)
class Step:
    """The next list of a partition, and the calls that lead to it, in order."""

    replicas: Replicas
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """The partition has to wait; ``reason`` is CamelCase, ``message`` names brokers."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Present:
    """The metadata of one partition that is not being reassigned."""

    replicas: Replicas
    isr: frozenset[BrokerId]
    leader: BrokerId | None


@dataclass(frozen=True, slots=True)
class StepRules:
    """``parallel_replicas`` is KIP-435's R; ``min_insync`` the topic's effective min.insync.replicas.

    ``alive``: the registered, unfenced brokers; None: all brokers are alive.
    """

    parallel_replicas: int
    min_insync: int = 1
    alive: AbstractSet[BrokerId] | None = None

    def is_alive(self, broker: BrokerId) -> bool:
        """Whether the broker can take part in replication now."""
        return self.alive is None or broker in self.alive


def next_step(present: Present, target: Replicas, rules: StepRules) -> Step | Wait | None:
    """The next step towards ``target``; None if the list is the target and its first replica leads."""
    if present.leader is None or not present.isr:
        return Wait(Reason.NO_LEADER, "the partition has no leader; it continues when one of its replicas returns")
    if present.replicas == target and present.leader == target[0]:
        return None
    wanted = _wanted_replicas(present, target, rules)
    calls = _calls(present, wanted, target, rules)
    if calls:
        return _what_it_waits_for(present, target, calls[0], rules) or Step(wanted, calls)
    if set(wanted) == set(target):
        return Wait(Reason.PREFERRED_LEADER_NOT_IN_SYNC, f"broker {target[0]} must be in sync before it can lead")
    return Wait(Reason.MIN_INSYNC_REPLICAS, "no replica can be dropped without falling below min.insync.replicas")


def all_steps(present: Present, target: Replicas, rules: StepRules) -> list[Step]:
    """Every step from ``present`` to ``target`` if each copy gets in sync; ValueError if one has to wait."""
    steps: list[Step] = []
    while (step := next_step(present, target, rules)) is not None:
        if isinstance(step, Wait):
            raise ValueError(f"{step.reason}: {step.message}")
        steps.append(step)
        present = _after(present, step)
    return steps


def to_rest(present: Present, target: Replicas, count: int, rules: StepRules) -> Alter | None:
    """A call that only drops replicas, to this ``count``, and keeps the leader; None: it has to wait.

    For a partition whose next step copies first. The order of what rule 4 drops; lost replicas do not have to stay, and
    where one would, Kafka would not complete the drop.
    """
    lost = _lost(present, rules)
    excess = [b for b in present.replicas if b not in target and b != present.leader]
    dropped = _first_to_drop(present, excess, lost)[: len(present.replicas) - count]
    kept = [b for b in present.replicas if b not in dropped]
    if present.leader is not None and kept[0] != present.replicas[0]:
        kept.sort(key=lambda b: b != present.leader)  # else Kafka might elect the next one in the list
    if len(kept) != count or not set(lost).isdisjoint(kept) or not _may_drop(present, [], dropped, rules):
        return None
    return Alter(tuple(kept))


def is_leader_movement(present: Present, call: Call) -> bool:
    """Whether the call counts towards KIP-435's L: it puts another replica first, or drops the leader."""
    if isinstance(call, Elect):
        return True
    return call.replicas[0] != present.leader or present.leader not in call.replicas


def _what_it_waits_for(present: Present, target: Replicas, call: Call, rules: StepRules) -> Wait | None:
    """Rule 6: do not start what Kafka would not complete; None if nothing prevents the call."""
    if not isinstance(call, Alter):
        return None
    unavailable = [b for b in call.until_in_sync if not rules.is_alive(b)]
    if unavailable:
        return Wait(
            Reason.TARGET_BROKER_UNAVAILABLE, f"{_name(unavailable)} to be added is not registered or is fenced"
        )
    lost = _lost(present, rules)
    staying = [b for b in lost if b in target]
    to_drop = [b for b in present.replicas if b not in target and b not in lost]
    shrinks = len(call.replicas) < len(present.replicas)
    if staying and (shrinks or to_drop) and set(call.replicas) != set(present.replicas):
        # Do not start the copy either: the drop after it would wait for a broker that may never return.
        return Wait(Reason.REPLICA_NOT_IN_SYNC, f"Kafka drops no replica while {_name(staying)}, which stays, is dead")
    return None


def _lost(present: Present, rules: StepRules) -> list[BrokerId]:
    """Replicas that are dead and out of sync, so they need not stay until new copies are made."""
    return [b for b in present.replicas if not rules.is_alive(b) and b not in present.isr]


def _wanted_replicas(present: Present, target: Replicas, rules: StepRules) -> Replicas:
    """The list that the next step leads to (rules 1 to 5); the present one if nothing may change."""
    missing = [b for b in target if b not in present.replicas]
    excess = [b for b in present.replicas if b not in target]
    lost = [b for b in _lost(present, rules) if b not in target]
    # May exceed R: Kafka before 4.3 completes nothing while one of them stays, so they are replaced together.
    limit = max(rules.parallel_replicas, len(lost))
    # Rule 1: R covers everything.
    if limit >= len(missing) and limit >= len(excess) and _may_drop(present, missing, excess, rules):
        return _order(present, target, frozenset(excess), adding=missing)
    # Rule 2: add the new leader first, and what min.insync.replicas lacks; drop only lost replicas.
    if target[0] in missing:
        lacking = max(1, rules.min_insync - len(present.isr), len(lost))
        return _order(present, target, frozenset(lost), adding=missing[:lacking])
    # Rule 3: it is a replica in sync: it leads before any copy, which takes load off the old leader.
    if target[0] in present.isr and present.leader != target[0]:
        return _order(present, target, frozenset())
    # Rule 4: drop at most R, add at most R and only back up to the replication factor or min ISR.
    excess = _first_to_drop(present, excess, lost)
    for count in range(min(limit, len(excess)), 0, -1):
        dropped = excess[:count]
        room = max(len(target) - (len(present.replicas) - count), rules.min_insync - len(present.isr - set(dropped)), 0)
        added = missing[: min(limit, room)]
        if _may_drop(present, added, dropped, rules):
            return _order(present, target, frozenset(dropped), adding=added)
    return _order(present, target, frozenset(), adding=missing[:limit])


def _first_to_drop(present: Present, excess: list[BrokerId], lost: list[BrokerId]) -> list[BrokerId]:
    """Lost, out of sync, in sync; else the present order."""
    return sorted(excess, key=lambda b: (b not in lost, b in present.isr))


def _may_drop(present: Present, added: list[BrokerId], dropped: list[BrokerId], rules: StepRules) -> bool:
    """Rule 4's condition: enough replicas stay in sync, and one of them is alive."""
    if not dropped:
        return True
    in_sync = (present.isr | set(added)) - set(dropped)
    enough = len(in_sync) >= min(rules.min_insync, len(present.isr))
    return enough and any(rules.is_alive(b) for b in in_sync)


def _order(
    present: Present, target: Replicas, dropped: frozenset[BrokerId], *, adding: list[BrokerId] | None = None
) -> Replicas:
    """Rule 5: target members in the target's order, then the rest in the present order.

    A target leader that is a replica but not in sync is not put first yet: Kafka's automatic leader rebalancing may
    elect the first replica at any time, so the order changes only in the call before our election.
    """
    kept = [b for b in present.replicas if b not in dropped]
    members = {*kept, *(adding or [])}
    ordered = [b for b in target if b in members] + [b for b in kept if b not in target]
    waiting_leader = target[0] in present.replicas and target[0] not in present.isr
    if waiting_leader and present.replicas[0] in kept:
        ordered.remove(present.replicas[0])
        ordered.insert(0, present.replicas[0])
    step = tuple(ordered)
    return target if step == target else step  # the same object: most steps of a large run lead to the target


def _calls(present: Present, wanted: Replicas, target: Replicas, rules: StepRules) -> tuple[Call, ...]:
    """Make before break: add and wait, then remove and reorder, then elect if the old leader stays a replica.

    The call that adds also drops lost replicas: with them Kafka completes little (`docs/kafka-behaviour.md`).
    """
    added = tuple(b for b in wanted if b not in present.replicas)
    lost = [b for b in _lost(present, rules) if b not in wanted]
    leader_stays = present.leader in wanted
    to_elect = wanted[0] != present.leader and leader_stays and wanted[0] == target[0]
    calls: list[Call] = []
    at = present.replicas
    if added:
        front = wanted[:1] if to_elect and wanted[0] in added else ()
        kept = tuple(b for b in at if b not in lost)
        at = front + kept + tuple(b for b in added if b not in front)
        calls.append(Alter(at, until_in_sync=added))
    if at != wanted:
        calls.append(Alter(wanted))
    if to_elect and (wanted[0] in present.isr or wanted[0] in added):
        calls.append(Elect(wanted[0]))
    return tuple(calls)


def _after(present: Present, step: Step) -> Present:
    """The partition after the step, with all added replicas in sync."""
    members = frozenset(step.replicas)
    isr = (present.isr | (members - set(present.replicas))) & members
    leader = present.leader
    if isinstance(step.calls[-1], Elect) or leader not in members:
        leader = next((b for b in step.replicas if b in isr), None)
    return Present(step.replicas, isr, leader)


def _name(brokers: list[BrokerId]) -> str:
    return ("broker " if len(brokers) == 1 else "brokers ") + ", ".join(str(b) for b in brokers)
