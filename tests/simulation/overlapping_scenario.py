"""Several rebalances that want the same partitions. These events use a separate random stream."""

from tests.simulation.conditions import ready
from tests.simulation.process import at_once
from tests.simulation.scenario import Scenario

from kafka_rebalance.api.v1alpha1 import LET_GO_ANNOTATION


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
        ]

    def prepare(self):
        super().prepare()
        for _ in range(self.more_draw.choice((1, 1, 2))):
            self.create()

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

    def _delete_if_there(self, key):
        found = self.world.kube.resources.get(key)
        if found is not None and "deletionTimestamp" not in found["metadata"]:
            self.world.note(f"*** {key[2]} is deleted")
            self.world.kube.delete(*key, self.world.clock.now().isoformat())

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
