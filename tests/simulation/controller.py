"""The controller: reassignments, elections and ISRs, with the differences between the release lines.

Each rule is a row of docs/kafka-behaviour.md, and names the test of `tests/contract` that records it. Most of these
tests run against this controller as well (`test_recordings.py`).
"""

from dataclasses import replace

from tests.contract.differences import COMPLETES_BESIDE_DEAD, CORDONED_LOG_DIRS, ELIGIBLE_LEADERS, STUCK_OVERLAP
from tests.fakes.kafka_in_memory import KafkaInMemory

from kafka_rebalance.kafka.ports import AlterCode, ClusterInfo, Reassignment
from kafka_rebalance.model.kafka_version import KafkaVersion
from kafka_rebalance.model.topology import BrokerId

_LEVELS = {"3.9": 21, "4.0": 25, "4.1": 27, "4.2": 29, "4.3": 30}


class SimulatedController(KafkaInMemory):
    """``line``: the release line, such as 4.3. ``held``: the bytes of each replica, as far as it is copied."""

    def __init__(self, world, brokers, *, line, racks):
        super().__init__(brokers)
        self.world, self.line = world, line
        self.brokers = {b: replace(broker, rack=racks.get(int(b))) for b, broker in self.brokers.items()}
        self.dead = {}
        self.held = {}
        self.completes_beside_dead = line >= COMPLETES_BESIDE_DEAD
        self.keeps_eligible_leaders = line >= ELIGIBLE_LEADERS
        self.has_cordons = line >= CORDONED_LOG_DIRS
        self.stuck_overlap = line >= STUCK_OVERLAP
        self.controller_epoch = 1

    def at_listener(self, _host, info):
        """The cluster as clients of this host see it."""
        return info

    @property
    def info(self):
        level = _LEVELS[self.line]
        return ClusterInfo("c", dict(self.brokers), KafkaVersion(level, level))

    def _set(self, tp, **changes):
        """Change the partition; its leader is a live member of the ISR, the present one if possible."""
        state = replace(self.states[tp], **changes)
        able = [b for b in state.replicas if b in state.isr and self._serves(b, tp)]
        if state.leader not in able:
            state = replace(state, leader=able[0] if able else None)
        if state != self.states[tp]:
            self.states[tp] = state
            self.world.judge.changed(tp)
            self._moves.set()

    # Reassignments ---------------------------------------------------------------------------------------------------

    def _alter(self, tp, to, *, redirect=False):
        """``redirect``: as a tool that gives a reassignment in flight another target (`test_redirect.py`)."""
        state = self.states.get(tp)
        code = self._accepts(state, to, redirect=redirect)
        self.world.judge.ordered(self.by, tp, to, state, code)
        if code is not AlterCode.OK:
            return code
        if to is None:
            self._cancel(tp, state)
        else:
            self._begin(tp, state, tuple(BrokerId(b) for b in to))
        return code

    def _accepts(self, state, to, *, redirect):
        """`test_reassignment.py::TestTargets`, `test_outage.py::TestOrders`; our adapter sends only null to a partition
        in flight (`test_redirect.py::TestOurAdapter`)."""
        if state is None:
            return AlterCode.UNKNOWN_TOPIC_OR_PARTITION
        if to is None:
            if not state.in_flight:
                return AlterCode.NO_REASSIGNMENT_IN_PROGRESS
            left = set(state.replicas) - set(state.adding)
            return AlterCode.INVALID_REPLICA_ASSIGNMENT if self._keeps_only(left, state) else AlterCode.OK
        if state.in_flight and not redirect:
            return AlterCode.IN_FLIGHT
        known = all(b in self.brokers or b in self.dead for b in to)
        return AlterCode.OK if known and len(set(to)) == len(to) > 0 else AlterCode.INVALID_REPLICA_ASSIGNMENT

    def _keeps_only(self, left, state):
        """Whether the last eligible leader is all that a null would keep (`test_outage.py::TestOrders`)."""
        return self.keeps_eligible_leaders and not left & state.isr

    def _cancel(self, tp, state):
        """The target without the added replicas, then what it would have removed, by id (`test_cancel.py`)."""
        left = tuple(b for b in state.replicas if b not in state.adding)
        isr = state.isr & set(left) or (frozenset(left[:1]) if not self.keeps_eligible_leaders else frozenset())
        self._drop(tp, state.adding)
        self._set(tp, replicas=left, isr=isr, adding=(), removing=())

    def _begin(self, tp, state, to):
        """Removed replicas are sorted by id. A redirect that adds or removes nothing keeps what was added or removed
        before (`test_redirect.py::TestBrokers`)."""
        adding = tuple(b for b in to if b not in state.replicas)
        removing = tuple(sorted(b for b in state.replicas if b not in to))
        for b in adding:
            self.held[tp, b] = 0
        replicas = (*to, *removing)
        self._set(tp, replicas=replicas, adding=adding or state.adding, removing=removing or state.removing)
        self._complete_if_due(tp)

    def _complete_if_due(self, tp):
        """`test_outage.py::TestOrders`: the older Kafka waits for the whole target, the newer one for what is added,
        unless more is removed than added. A replica that is added and removed keeps the newer one from completing
        (`test_redirect.py::TestBrokers`)."""
        state = self.states[tp]
        target = [b for b in state.replicas if b not in state.removing]
        if state.in_flight:
            whole = not self.completes_beside_dead or len(state.removing) > len(state.adding)
            awaited = target if whole else state.adding
            if self.stuck_overlap and state.wedged:
                return
            if not set(awaited) <= state.isr or not state.isr & set(target):
                return
            self._drop(tp, state.removing)
            self._set(tp, replicas=tuple(target), isr=state.isr & set(target), adding=(), removing=())

    def _drop(self, tp, brokers):
        for b in brokers:
            self.held.pop((tp, b), None)

    def _elect(self, tp):
        state = self.states.get(tp)
        if state is None:
            return AlterCode.UNKNOWN_TOPIC_OR_PARTITION
        if state.leader == state.replicas[0]:
            return AlterCode.ELECTION_NOT_NEEDED
        if state.replicas[0] not in state.isr or not self._serves(state.replicas[0], tp):
            return AlterCode.PREFERRED_LEADER_NOT_AVAILABLE
        self.elected.append(str(tp))
        self._set(tp, leader=state.replicas[0])
        return AlterCode.OK

    async def list_reassignments(self):
        return {
            tp: Reassignment(state.replicas, state.adding, state.removing)
            for tp, state in self.states.items()
            if state.in_flight
        }
