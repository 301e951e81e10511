"""Any resources of a cluster: what takes a deleted one over is found among few, and equals a scan of all pairs."""

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.fakes.found_by_rounds import found, recorded, remembered

from kafka_rebalance.api.v1alpha1 import FINALIZER
from kafka_rebalance.model.plan import Certificate, Plan, PlannedPartition
from kafka_rebalance.model.run import Run
from kafka_rebalance.model.topology import TopicPartition, replicas_of
from kafka_rebalance.reconcile.act.plan_order import takeovers
from kafka_rebalance.reconcile.decide.replanning import wants_plan
from kafka_rebalance.reconcile.decide.teardown import awaited_plans, successors_of, uncounted_successors
from kafka_rebalance.reconcile.state.assessment import Successor
from kafka_rebalance.reconcile.state.rebalance import Rebalance
from kafka_rebalance.reconcile.state.record import loaded_run_of

NOON = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
PARTITIONS = [TopicPartition("orders", number) for number in range(3)]
SETS = [frozenset(some) for count in (1, 2, 3) for some in combinations(PARTITIONS, count)]
NAMES = "abcde"


@dataclass(frozen=True)
class Known:
    """A KafkaRebalance. ``moves``: the partitions of its open run; None: it has none. All were created at ``minute``.

    ``selects``: the partitions of its spec.
    """

    name: str
    namespace: str
    minute: int
    deleting: bool
    policy: str
    takes_over: str
    started: bool
    moves: frozenset[TopicPartition] | None
    selects: frozenset[TopicPartition]

    def view(self) -> Rebalance:
        at = NOON + timedelta(minutes=self.minute)
        metadata = {
            "name": self.name,
            "namespace": self.namespace,
            "uid": f"uid-{self.name}",
            "finalizers": [FINALIZER],
        }
        metadata["creationTimestamp"] = at.isoformat()
        if self.deleting:
            metadata["deletionTimestamp"] = at.isoformat()
        spec = {
            "kafka": {"bootstrapServers": "kafka:9092"},
            "deletionPolicy": self.policy,
            "takesOver": self.takes_over or None,
        }
        mine = recorded(Rebalance.of({"metadata": metadata, "spec": spec}), was_read=True)
        if self.moves is None:
            return mine
        rows = [PlannedPartition(tp, replicas_of(1, 2), replicas_of(3, 2)) for tp in sorted(self.moves)]
        plan = Plan(tuple(rows), Certificate(len(rows), optimal=True))
        hashes, started = (mine.desired.planning_hash, plan.hash), NOON if self.started else None
        run = Run(mine.uid, self.namespace, self.name, "c", "run", *hashes, NOON, started_at=started)
        return recorded(mine, run=run, loaded_run=loaded_run_of(run, plan, "ref", {}))

    @property
    def ending(self) -> bool:
        return self.deleting and self.moves is not None

    @property
    def may_begin(self) -> bool:
        return not self.deleting and not (self.moves is not None and self.started)

    def may_be_renamed(self, old: "Known") -> bool:
        near = abs(self.minute - old.minute) <= 5 and self.namespace == old.namespace
        return self.may_begin and near and old.policy == "Rollback"

    def names(self, old: "Known") -> bool:
        return self.takes_over == old.name and self.namespace == old.namespace

    def takes(self, old: "Known") -> bool:
        """Whether it continues instead of a rollback of the other."""
        moves_all = bool(old.moves) and self.moves is not None and old.moves <= self.moves
        return self.may_begin and (self.names(old) or (moves_all and self.may_be_renamed(old)))


@st.composite
def resources(draw):
    """Of one cluster, in the order of any watch; about half of them are being deleted."""
    found = []
    for number, name in enumerate(NAMES):
        found.append(
            Known(
                name,
                draw(st.sampled_from(["k"] * 6 + ["l"])),
                draw(st.sampled_from([0, 0, 3, 9])),
                draw(st.sampled_from([number % 2 == 0] * 3 + [number % 2 == 1])),
                draw(st.sampled_from(["Rollback"] * 5 + ["Revert"])),
                draw(st.sampled_from(["", "", *NAMES.replace(name, "")])),
                draw(st.sampled_from([False] * 4 + [True])),
                draw(st.sampled_from([*SETS, None, None])),
                draw(st.sampled_from(SETS)),
            )
        )
    return draw(st.permutations(found))


def scanned_successors(known):
    found = {}
    for old in known:
        able = [new for new in known if old.ending and new.takes(old)]
        if able:
            best = min(able, key=lambda new: (not new.names(old), new.minute, f"uid-{new.name}"))
            found[f"uid-{old.name}"] = best.name
    return found


def scanned_uncounted(known):
    return {
        f"uid-{new.name}"
        for new in known
        if new.may_begin and any(old.ending and (new.names(old) or new.may_be_renamed(old)) for old in known)
    }


def scanned_renamings(known):
    return {
        f"uid-{new.name}": [
            f"uid-{old.name}"
            for old in known
            if old.ending and new.may_be_renamed(old) and not new.deleting and old.moves <= new.selects
        ]
        for new in known
    }


def scanned_waits(views, renamed, now):
    """Each rollback looks for the first resource that wants a plan and may take it over."""
    waits = {}
    for old in views:
        deleted = old.desired.metadata.deletion_timestamp
        if deleted is None or now - deleted > timedelta(minutes=5) or old.assessment.successor is not None:
            continue
        planning = [new for new in views if new.memory.planning is not None or wants_plan(new)]
        first = next((new for new in planning if old in renamed[new.uid]), None)
        if first is not None:
            waits[old.uid] = first.name
    return waits


@examples(10)
@given(resources(), st.data())
def test_what_takes_a_rollback_over_is_what_a_scan_finds(known, data):
    """Also after one of the resources was edited and one is gone: nothing of the round before is kept."""
    for _ in range(2):
        views = [one.view() for one in known]
        selected = {f"uid-{one.name}": one.selects for one in known}
        names = {uid: successor.name.rpartition("/")[2] for uid, successor in successors_of(views).chosen.items()}
        assert names == scanned_successors(known)
        assert uncounted_successors(views) == scanned_uncounted(known)
        renamed = asyncio.run(takeovers(views, selected))
        assert {uid: [old.uid for old in olds] for uid, olds in renamed.items()} == scanned_renamings(known)
        now = NOON + timedelta(minutes=data.draw(st.sampled_from([0, 6, 9])))
        for view in views:
            successor = data.draw(st.sampled_from([None, None, Successor("uid-a", "k/a")]))
            found(view, successor=successor)
            remembered(view, planning=data.draw(st.sampled_from([None, None, object()])))
        assert awaited_plans(views, renamed, now) == scanned_waits(views, renamed, now)
        edited = next(one for one in data.draw(resources()) if one.name == known[0].name)
        known = [edited, *known[2:]]
