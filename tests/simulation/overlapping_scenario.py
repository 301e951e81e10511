"""Several rebalances that want the same partitions. These events use a separate random stream."""

import random

from tests.simulation.conditions import ready
from tests.simulation.process import at_once
from tests.simulation.scenario import Scenario

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION, REBALANCES
from kafka_rebalance.kube.store import RunStore
from kafka_rebalance.reasons import Reason

_KEPT_BY_ANOTHER_PLAN = ("kafka", "topics", "execution", "deletionPolicy")


class OverlappingScenario(Scenario):
    """Rebalances have priorities, take over from each other, and are let go."""

    def __init__(self, world):
        super().__init__(world)
        self.more_draw = world.fault_random
        self.happenings += [
            (6, self.create),
            (5, self.edit_priority),
            (3, self.delete),
            (2, self.edit_plan),
            (3, self.rename),
            (2, self.take_over),
            (1, self.let_go),
            (3, self.edit_deletion),
            (4, self.undo_soon),
            (4, self.another_instead),
            (4, self.order_is_not_sent),
            (4, self.planned_partition_of_others),
            (3, self.originals_die),
        ]
        self._kill_before_order = False
        self._other_plan_draw = random.Random(f"other plan {world.seed}")
        self._decision_draw = random.Random(f"decision {world.seed}")
        self._decided_at = dict[tuple[str, str, str], float]()

    def prepare(self):
        super().prepare()
        for _ in range(self.more_draw.choice((1, 1, 2))):
            self.create()
        if self.more_draw.random() < 0.4:
            self.world.note(f"*** {self.originals_die()}")
        if self._other_plan_draw.random() < 0.3:
            self.world.loop.create_task(self._other_plan_instead())
        self.world.loop.create_task(self._decide_on_large_rollbacks())

    def spec(self):
        spec = super().spec()
        if self.more_draw.random() < 0.8:
            spec["topics"] = {"include": ["t.*"]}
        return spec

    def with_policies(self, spec):
        draw = self.more_draw
        spec["priority"] = draw.choice((0, 0, 0, 1, 2))
        spec["approval"] = spec["approval"] | {"driftBudget": draw.choice((0, 20, 100))}
        if draw.random() < 0.3:
            spec["rollback"] = {"timeout": draw.choice(("30s", "90s"))}
        if self._decision_draw.random() < 0.3:
            spec["rollback"] = spec.get("rollback", {}) | {"maxData": "1"}
        return spec

    def edit_priority(self):
        return self._edit(priority=self.more_draw.choice((0, 1, 2, 5)))

    def take_over(self):
        """By name; the other one is deleted before or after that."""
        key, draw = self._some(), self.more_draw
        if key is None:
            return None
        after = draw.random() < 0.5
        if not after:
            self._delete_if_there(key)
        told = self.create(key[1], takesOver=key[2])
        if after:
            self.world.loop.call_later(draw.choice((0.2, 2, 10)), self._delete_if_there, key)
        return f"{told}, and takes over from {key[2]}"

    def another_instead(self):
        """It is deleted, and another one is created beside the rollback that does not move the same partitions."""
        key = self._some()
        if key is None:
            return None
        spec = self.world.kube.resources[key]["spec"]
        kept = {name: spec[name] for name in spec.keys() - {"brokers", "replicationFactor", "takesOver"}}
        elsewhere = {"t0": ["t1", "t2"], "t1": ["t0"]}.get(spec["topics"]["include"][0])
        other = {"topics": {"include": elsewhere}} if elsewhere else {"strategy": "PreferredLeaders"}
        self._delete_if_there(key)
        return f"something else is wanted: {self.create(key[1], kept | other)}"

    async def _other_plan_instead(self):
        """A run that has moved partitions is deleted, and another rebalance is created that moves only some of them.

        It selects all of the topics, so only its plan says that it does not take the rollback over.
        """
        for _ in range(300):
            await self.world._sleep(0.2)
            chances = [(key, broker) for key, moved in self._moving() for broker in self._held_by_some(key, moved)]
            if chances:
                key, broker = self._other_plan_draw.choice(chances)
                kept = {name: self.world.kube.resources[key]["spec"][name] for name in _KEPT_BY_ANOTHER_PLAN}
                other = {"strategy": "ForcedMovesOnly", "brokers": {"decommission": [broker]}}
                told = self.create(key[1], kept | other | {"approval": {"policy": "Automatic"}})
                self.world.note(f"*** another plan is wanted: {told}")
                self.world.loop.call_later(self._other_plan_draw.choice((0, 0, 0.5)), self._delete_if_there, key)
                return

    def _moving(self):
        """The resources whose deletion rolls back, with the partitions that their runs have moved, as they were."""
        for run in at_once(RunStore(self.world.kube).list_unshared()):
            body, first = self.world.body_of(run.uid), self.world.judge.first.get((run.uid, run.run_id), {})
            before = {tp: row for (tp, _), row in first.items() if tp in self.world.kafka.states}
            moved = any(self.world.kafka.states[tp].replicas != row for tp, row in before.items())
            if run.open and not run.undo and moved and body is not None and _rolls_back(body):
                yield (REBALANCES, run.namespace, run.name), before

    def _held_by_some(self, key, before):
        """Brokers that hold a partition which the resource selects, and not all those that its run has moved."""
        kafka, selected = self.world.kafka, self.world.kube.resources[key]["spec"]["topics"]["include"]
        rows = {tp: before.get(tp, state.replicas) for tp, state in sorted(kafka.states.items())}
        held = {b for tp, row in rows.items() if "t.*" in selected or tp.topic in selected for b in row}
        return sorted(b for b in held & set(kafka.brokers) if any(b not in row for row in before.values()))

    def _delete_if_there(self, key):
        found = self.world.kube.resources.get(key)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            self.world.note(f"*** {key[2]} is deleted")
            self.world.kube.delete(*key, self.world.clock.now().isoformat())

    async def _decide_on_large_rollbacks(self):
        """A rollback that is too large waits for a decision, and comes after some time. Others may begin meanwhile."""
        while True:
            await self.world._sleep(1.0)
            now = self.world.loop.now
            for key, body in self.world.rebalances():
                if ready(body) == Reason.ROLLBACK_TOO_LARGE:
                    decided_at = self._decided_at.setdefault(key, now + self._decision_draw.choice((5, 20, 60)))
                    if now >= decided_at:
                        self.world.note(f"*** {key[2]} may be rolled back")
                        self.world.kube.edit(*key, rollback=body["spec"]["rollback"] | {"maxData": "1Ti"})

    def let_go(self):
        deleting = [key for key, body in self.world.rebalances() if "deletionTimestamp" in body["metadata"]]
        if not deleting:
            return None
        key = self.more_draw.choice(deleting)
        body = self.world.kube.resources[key]
        at_once(self.world.kube.annotate(*key, body["metadata"]["uid"], {LET_GO_ANNOTATION: "true"}))
        self.world.kube._touch(body)
        return f"{key[2]} is to be let go"

    def edit_deletion(self):
        """The policy of a rebalance that is being deleted, or of another one."""
        found = [key for key, _ in self.world.rebalances()]
        if not found:
            return None
        key, policy = self.more_draw.choice(found), self.more_draw.choice(("Rollback", "Rollback", "Revert", "Abandon"))
        self.world.kube.edit(*key, deletionPolicy=policy)
        return f"{key[2]} has the deletionPolicy {policy}"

    def undo_soon(self):
        """When one has succeeded."""
        self.world.loop.create_task(self._undo_when_possible())
        return "an undo is to follow"

    async def _undo_when_possible(self):
        for _ in range(20):
            if any(ready(body) == "Succeeded" for _, body in self.world.rebalances()):
                self.world.note(f"*** {self.undo()}")
                return
            await self.world._sleep(1.0)

    # Kafka -----------------------------------------------------------------------------------------------------------

    def planned_partition_of_others(self):
        """Others move a partition before its run does, to brokers that its plan names too."""
        rows = {tp: self._brokers_of(row) for run, tp, row in self._planned() if tp not in self._origins(run)}
        return self._moved_by_others(self.more_draw.choice(sorted(rows.items()))) if rows else None

    def originals_die(self):
        """Kill brokers during a copy until its cancellation would leave too few in sync. Then cancel the run."""
        self.world.loop.create_task(self._originals_die())
        return "brokers will die while a partition is copied"

    async def _originals_die(self):
        """The cancellation would leave one replica in sync less than min.insync.replicas.

        Often all other faults have ended before the first copy.
        """
        for _ in range(300):
            await self.world._sleep(0.2)
            for tp, uid in sorted(self.world.judge.ours.items()):
                dying = self._dying_for(self.world.kafka.states.get(tp))
                if dying:
                    self.world.note(f"*** brokers {dying} die for 120 s while {tp} is copied")
                    for broker in dying:
                        self._dies(broker, 120)
                    await self._unwanted_when_in_sync(tp, uid)
                    return

    def _dying_for(self, state):
        """Replicas of a copy in flight that are not needed for it; empty if too few would be left."""
        kafka = self.world.kafka
        if state is None or not state.adding or (least := self.world.min_insync(state.tp.topic)) < 2:
            return []
        dying = sorted((state.isr - set(state.adding)) & set(kafka.brokers))[least - 1 :]
        return dying if len(dying) < len(kafka.brokers) - 1 else []

    async def _unwanted_when_in_sync(self, tp, uid):
        for _ in range(300):
            await self.world._sleep(0.2)
            state, body = self.world.kafka.states.get(tp), self.world.body_of(uid)
            if state is None or body is None or not state.in_flight:
                return
            if 0 < len(state.isr - set(state.adding)) < min(len(state.isr), self.world.min_insync(tp.topic)):
                self._delete_if_there((REBALANCES, body["metadata"]["namespace"], body["metadata"]["name"]))
                return

    def order_is_not_sent(self):
        """An operator is killed between the record of an origin and the first call, and others move the partition."""
        self._kill_before_order = True
        return "an operator will be killed before it moves a partition, and others will move this partition"

    def recorded(self, process):
        """Kill it if it has just recorded an origin, and has not sent the call."""
        if not self._kill_before_order or process is None or not process.alive:
            return
        origins = {tp: (self._origins(run).get(tp), self._brokers_of(row)) for run, tp, row in self._planned()}
        unsent = {tp: known for tp, (origin, known) in origins.items() if origin is not None and origin.first_call}
        if unsent:
            self._kill_before_order = False
            self.world.note(f"*** {process} is killed before it moves {sorted(map(str, unsent))}")
            process.kill()
            seconds, first = self.more_draw.choice((0.1, 5)), min(unsent.items())
            self.world.loop.call_later(seconds, lambda: self.world.note(f"*** {self._moved_by_others(first)}"))

    def _planned(self):
        """The partitions that a run is to move, and that are where they were: with the run, and the row of its plan."""
        states = self.world.kafka.states
        for run in at_once(RunStore(self.world.kube).list_unshared()):
            for tp, row in self.world.judge._plan(run).items() if run.open else ():
                if row.current != row.target and tp in states and states[tp].replicas == row.current:
                    yield run, tp, row

    def _origins(self, run):
        return self.world.judge._origins(run.uid, run.run_id)

    @staticmethod
    def _brokers_of(row):
        return sorted({*row.current, *row.target})

    def _moved_by_others(self, partition):
        (tp, known), kafka = partition, self.world.kafka
        able, state = set(known) & set(kafka.brokers), kafka.states.get(tp)
        if state is None or state.in_flight or len(able) < len(state.replicas):
            return None
        to = self.more_draw.sample(sorted(able), len(state.replicas))
        return f"others move {tp}, which is planned, to {to}: {kafka._alter(tp, to)}"


def _rolls_back(body):
    """Whether it is there, and its deletion moves back what it has moved."""
    return "deletionTimestamp" not in body["metadata"] and body["spec"]["deletionPolicy"] == "Rollback"
