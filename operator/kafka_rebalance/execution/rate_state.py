"""The state machine of one throttle rate: one side of one broker, from our first write to the restored value.

Pure. The ledger row (``RateRecord``) says what may be set in Kafka and what to restore, and outlives the process. The
state says what this process knows, so it begins at UNKNOWN after a restart.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from kafka_rebalance.execution.ledger import Before, EmergencyBrake, RateRecord
from kafka_rebalance.execution.reassignment_throttle import RequestedRate

LATE_SECONDS = 30.0
"""How long an unanswered write may still take effect: a broker that hung carries out what it was sent.

Counted from the first answer of the broker after that: while it hangs, however long, nothing has taken effect yet.
"""
SILENT = float("inf")
"""``answered_again_at`` of a rate whose broker has not answered since."""


class RatePhase(StrEnum):
    """The operator's knowledge of the rate that is set on the broker."""

    UNKNOWN = "Unknown"  # nothing: after a start, an unanswered write, or a revert by somebody else
    WRITTEN = "Written"  # the broker accepted our rate; not read back yet
    IN_PLACE = "InPlace"  # read back: our rate, or a lower one that somebody set
    OVERWRITTEN = "Overwritten"  # ours was read back, but later one of our earlier rates
    RESTORED = "Restored"  # the broker accepted the original value; not read back yet


class RateAction(StrEnum):
    """What the caller has to do about a reading."""

    NOTHING = "Nothing"
    SAVE_BRAKE = "SaveBrake"  # somebody lowered the rate: save the row; no write follows
    SAVE_REVERT = "SaveRevert"  # somebody deleted or raised the rate: count a revert, save the row; a write follows
    RESTORE = "Restore"  # write what the ledger says was there before
    WAIT = "Wait"  # somebody has set another value, and an unanswered write of ours may still replace it
    FORGET = "Forget"  # nothing of ours is left: strike the row off the ledger


@dataclass(frozen=True, slots=True)
class Doubt:
    """An unexpected ``value`` was read once. ``blocks``: the rate that is not written before a second reading."""

    value: int | None
    blocks: int | None = None


@dataclass(frozen=True, slots=True)
class RateState:
    """Rates in bytes per second, times in seconds of a monotonic clock.

    ``rate``: what is set on the broker; None: not known. ``answered_again_at``: when the broker first answered after a
    call of ours that got no answer, ``SILENT`` until it does; the start of the process before the first such call,
    since a process before it may have been killed while writing.
    """

    answered_again_at: float
    phase: RatePhase = RatePhase.UNKNOWN
    rate: int | None = None
    doubt: Doubt | None = None

    def lacks(self, rate: int | None) -> bool:
        """Whether this rate should be set and is not, as far as is known."""
        return rate is not None and self.rate != rate

    def must_write(self, rate: int | None) -> bool:
        """Whether to write this rate now."""
        return self.lacks(rate) and not (self.doubt is not None and self.doubt.blocks == rate)


@dataclass(frozen=True, slots=True)
class RateWritten:
    """We sent a rate to the broker, or the original value (None)."""

    rate: int | None
    accepted: bool


@dataclass(frozen=True, slots=True)
class RateUnread:
    """The broker did not answer when we asked."""


@dataclass(frozen=True, slots=True)
class RateRead:
    """We read the value that is set on this very broker (None: none is).

    ``asked``: what the claims ask for; empty: the rate is to be restored.
    """

    value: int | None
    row: RateRecord
    asked: Mapping[str, RequestedRate]


@dataclass(frozen=True, slots=True)
class Transition:
    """The next state, what to do about it, and the row to save with the two SAVE actions."""

    state: RateState
    action: RateAction = RateAction.NOTHING
    row: RateRecord | None = None


def transition(state: RateState, event: RateWritten | RateUnread | RateRead, now: float) -> Transition:
    """The state after an event, and the action that follows from it.

    ============================ ===================================== ======================= ============
    State                        Event                                 Next state              Action
    ============================ ===================================== ======================= ============
    any                          write accepted                        WRITTEN                 NOTHING
    any                          write not accepted                    UNKNOWN, silent         NOTHING
    any                          read not answered                     the same, silent        NOTHING
    RESTORED                     claimed: expected rate read           RESTORED, rate unknown  NOTHING
    any other                    claimed: expected rate read           IN_PLACE                NOTHING
    any                          claimed: another value, first time    the same, with a doubt  NOTHING
    IN_PLACE, OVERWRITTEN        claimed: same value again, stale      OVERWRITTEN             NOTHING
    UNKNOWN, WRITTEN, RESTORED   claimed: same value again, stale      UNKNOWN                 NOTHING
    any                          claimed: same value again, lower      IN_PLACE                SAVE_BRAKE
    any                          claimed: same again, gone or higher   UNKNOWN                 SAVE_REVERT
    any                          unclaimed: still ours, or may be      the same                RESTORE
    any                          unclaimed: original or foreign value  the same                FORGET
    UNKNOWN                      unclaimed: foreign, write may arrive  the same                WAIT
    any                          restore accepted                      RESTORED                NOTHING
    RESTORED                     restore not accepted                  RESTORED                NOTHING
    any other                    restore not accepted                  UNKNOWN                 NOTHING
    ============================ ===================================== ======================= ============

    The expected rate is the one known to be set, else the one on record. A value is stale if an earlier write of ours
    explains it: one of our rates, or the original value before ours was ever read back. Other values are somebody's
    doing, and believed at the second reading, because brokers show a write late.
    """
    match event:
        case RateWritten(None, accepted):
            restored = accepted or state.phase is RatePhase.RESTORED
            return Transition(RateState(state.answered_again_at, RatePhase.RESTORED if restored else RatePhase.UNKNOWN))
        case RateWritten(rate, accepted=True):
            return Transition(RateState(state.answered_again_at, RatePhase.WRITTEN, rate))
        case RateWritten():
            return Transition(RateState(SILENT))
        case RateUnread():
            return Transition(replace(state, answered_again_at=SILENT))
        case RateRead() if state.answered_again_at == SILENT:
            return transition(replace(state, answered_again_at=now), event, now)
        case RateRead() if event.asked:
            return _read_claimed(state, event.value, event.row, event.asked)
        case RateRead():
            return Transition(state, _read_unclaimed(state, event, now))


def row_to_write(
    row: RateRecord, rate: int, state: RateState, asked: Mapping[str, RequestedRate], claims: Collection[str]
) -> RateRecord:
    """The ledger row to save before writing ``rate``, or the emergency brake if one holds.

    ``intended`` of the row is what to write. ``claims``: all claims on the broker, with or without a rate there.
    """
    if row.brake is not None:
        holds = row.brake.holds(asked, claims)
        row, rate = (row, min(rate, row.brake.rate)) if holds else (replace(row, brake=None), rate)
    if rate not in row.possibly_ours:
        # Once a rate was read back, no write before it can still take effect.
        possible = {state.rate} if state.phase is RatePhase.IN_PLACE else row.possibly_ours
        row = replace(row, possibly_ours=frozenset({rate, *(possible & row.possibly_ours)}))
    return replace(row, intended=rate)


def _read_claimed(
    state: RateState, value: int | None, row: RateRecord, asked: Mapping[str, RequestedRate]
) -> Transition:
    if row.intended is None:
        return Transition(state)
    if value is not None and value == (row.intended if state.rate is None else state.rate):
        if state.phase is RatePhase.RESTORED:
            # Our rate before the restore, read late: it is not in place, and has to be written again.
            return Transition(RateState(state.answered_again_at, RatePhase.RESTORED))
        return Transition(RateState(state.answered_again_at, RatePhase.IN_PLACE, value))
    was_read = state.phase in {RatePhase.IN_PLACE, RatePhase.OVERWRITTEN}
    stale = value in row.possibly_ours or (value == row.value_when_restored and not was_read)
    if state.doubt is None or state.doubt.value != value:
        # What an earlier write of ours explains may be overwritten at once. Any other value may be a brake, so our rate
        # is not written before a second reading. An older protection stays.
        before = state.doubt.blocks if state.doubt is not None else None
        return Transition(replace(state, doubt=Doubt(value, before if stale else row.intended)))
    if stale:
        return Transition(RateState(state.answered_again_at, RatePhase.OVERWRITTEN if was_read else RatePhase.UNKNOWN))
    # Without a value of its own the broker has the static rate or the default of all brokers again.
    uncovered = Before(None, dynamic=False) if row.original.dynamic else row.original
    set_by_others = uncovered if value is None else Before(str(value), dynamic=True)
    if value is not None and value < row.intended:
        brake = EmergencyBrake(value, {claim: one.rate for claim, one in asked.items()})
        braked = RateState(state.answered_again_at, RatePhase.IN_PLACE, value)
        return Transition(braked, RateAction.SAVE_BRAKE, replace(row, set_by_others=set_by_others, brake=brake))
    # Where replication has a throttle besides ours, this value is that throttle from now on.
    replication_set_by_others = set_by_others if row.replication is not None else row.replication_set_by_others
    reverted = replace(
        row, set_by_others=set_by_others, replication_set_by_others=replication_set_by_others, brake=None
    )
    return Transition(RateState(state.answered_again_at), RateAction.SAVE_REVERT, reverted)


def _read_unclaimed(state: RateState, read: RateRead, now: float) -> RateAction:
    """The rate is to be restored, unless somebody else has set it, and until no write of ours can arrive any more."""
    if state.phase is RatePhase.RESTORED:
        over = True
    else:
        over = state.rate is None and now - state.answered_again_at >= LATE_SECONDS
    if read.value == read.row.value_when_restored:
        return RateAction.FORGET if over else RateAction.RESTORE
    if read.value in read.row.possibly_ours:
        return RateAction.RESTORE
    return RateAction.FORGET if over or state.rate is not None else RateAction.WAIT
