"""The additional events in a world with more faults. They use a separate random stream."""

import re

from tests.simulation.brokers import MIB
from tests.simulation.conditions import message, ready
from tests.simulation.scenario import Scenario

from kafka_rebalance.api.v1alpha1 import REBALANCES
from kafka_rebalance.model.topology import BrokerId, TopicPartition

_NAMESPACES = ("a", "b")


class FaultScenario(Scenario):
    """``prepare`` also takes a permission away for good, sometimes."""

    def __init__(self, world):
        super().__init__(world)
        self.more = world.fault_random
        self.topics_made = 0
        self.happenings += [
            (4, self.approve),
            (2, self.edit_approval),
            (3, self.replication_factor_of_others),
            (2, self.redirect_of_others),
            (1, self.topic_is_created),
            (2, self.several_partitions_are_added),
            (4, self.controller_hangs),
            (2, self.create_elsewhere),
            (3, self.broker_is_replaced),
            (3, self.disk_fills),
            (3, self.rights_are_denied),
            (4, self.producers_write),
            (1, self.namespace_goes),
            (5, self.watch_expires),
        ]

    def prepare(self):
        super().prepare()
        kafka, topic = self.world.kafka, self._topic()
        lasting = self.more.random()
        if lasting < 0.3:
            denied, what = (kafka.hidden, "") if lasting < 0.2 else (kafka.forbidden, "the configs of ")
            denied.add(topic)
            kafka.denied_for_good.add(topic)
            self.world.judge.statuses.denied.add(topic)
            self.world.note(f"*** {what}{topic} may never be described")

    # Users -----------------------------------------------------------------------------------------------------------

    def create(self, namespace="a", same=None):
        if namespace in self.world.kube.terminating_namespaces:
            return f"nothing, because namespace {namespace} is being deleted"
        return super().create(namespace, same)

    def create_elsewhere(self):
        """In the other namespace, whose servers are another listener of the cluster."""
        return self.create("b")

    def servers(self, namespace):
        """Of one of the two listeners."""
        return f"kafka-{namespace}-other:9093" if self.more.random() < 0.3 else super().servers(namespace)

    def worst_moment(self):
        """Somebody no longer wants a copy that keeps a partition at min.insync.replicas."""
        if not self.world.faults.calm and self.more.random() < 0.3:
            gone = self.more.choice((self.delete, self.edit_plan))()
            self.world.note(f"*** at the worst moment: {gone}")

    def limits(self):
        return None if "a" in self.world.kube.terminating_namespaces else super().limits()

    def approve(self):
        """The plan that is shown, or one that is not."""
        waiting = [key for key, body in self.world.rebalances() if ready(body) == "AwaitingApproval"]
        keys = waiting or [key for key, _ in self.world.rebalances()]
        if not keys:
            return None
        key = self.more.choice(keys)
        body = self.world.kube.resources[key]
        shown = body.get("status", {}).get("plan", {}).get("hash")
        made = shown if shown and self.more.random() < 0.7 else "0" * 12
        self.world.kube.edit(*key, approval={"policy": "Manual", "planHash": made})
        return f"{key[2]} is approved with {made}"

    def edit_approval(self):
        policy = self.more.choice(("Manual", "Automatic"))
        return self._edit(approval={"policy": policy})

    def namespace_goes(self):
        """Everything in it is deleted, and nothing can be created in it until that is gone."""
        kube, namespace = self.world.kube, self.more.choice(_NAMESPACES)
        inside = [key for key in sorted(kube.resources) if key[1] == namespace]
        if not inside or namespace in kube.terminating_namespaces:
            return None
        kube.terminating_namespaces.add(namespace)
        for key in inside:
            if "deletionTimestamp" not in kube.resources[key]["metadata"]:
                kube.delete(*key, self.world.clock.now().isoformat())
        self._until_it_is_gone(namespace)
        return f"namespace {namespace} is deleted"

    def _until_it_is_gone(self, namespace):
        if any(key[1] == namespace for key in self.world.kube.resources):
            self.world.loop.call_later(1, self._until_it_is_gone, namespace)
        else:
            self.world.note(f"*** namespace {namespace} is gone")
            self.world.kube.terminating_namespaces.discard(namespace)

    def watch_expires(self):
        watching = [process for process in self.world.processes if process.alive and process.watching]
        if not watching:
            return None
        process, seconds = self.more.choice(watching), self.more.choice((0.5, 3, 10))
        process.expire_watch(seconds)
        return f"the watch of {process} has expired; it is established again after {seconds} s"

    # Kafka -----------------------------------------------------------------------------------------------------------

    def _topic(self):
        topics = sorted({tp.topic for tp in self.world.kafka.states})
        return self.more.choice(topics) if topics else None

    def _at_rest(self):
        return [tp for tp, state in sorted(self.world.kafka.states.items()) if not state.in_flight]

    def replication_factor_of_others(self):
        """One replica more or less than there is."""
        kafka, tps = self.world.kafka, self._at_rest()
        if not tps:
            return None
        tp = self.more.choice(tps)
        now = list(kafka.states[tp].replicas)
        free = [b for b in sorted(kafka.brokers) if b not in now]
        if len(now) > 1 and (not free or self.more.random() < 0.5):
            now.remove(self.more.choice(now))
        elif free:
            now.append(self.more.choice(free))
        return f"others change the replication factor of {tp} by {now}: {kafka._alter(tp, now)}"

    def redirect_of_others(self):
        """Another target for a reassignment in flight, which may never end (`test_redirect.py::TestBrokers`)."""
        kafka = self.world.kafka
        flying = [tp for tp, state in sorted(kafka.states.items()) if state.in_flight]
        if not flying:
            return None
        tp = self.more.choice(flying)
        state = kafka.states[tp]
        before = [b for b in state.replicas if b not in state.adding]
        to = self.more.choice((before, self.more.sample(sorted(kafka.brokers), min(len(before), len(kafka.brokers)))))
        return f"others redirect {tp} to {to}: {kafka._alter(tp, to, redirect=True)}"

    def topic_is_created(self):
        kafka = self.world.kafka
        self.topics_made += 1
        rows = kafka.placement(self.more.randint(1, 4), self.more.randint(1, 3))
        if rows is None:
            return None
        kafka.make_topic(name := f"t{10 + self.topics_made}", rows, MIB, 1)
        return f"topic {name} is created: {rows}"

    def several_partitions_are_added(self):
        kafka, topic = self.world.kafka, self._topic()
        if topic is None or TopicPartition(topic, 0) not in kafka.states:
            return None
        count = self.more.randint(2, 5)
        for _ in range(count):
            kafka.add_partition(topic)
        return f"topic {topic} has {count} more partitions"

    def controller_hangs(self):
        seconds = self.more.choice((2, 5, 8))
        self.world.faults.hung_until = self.world.loop.now + seconds
        return f"the controller hangs for {seconds} s"

    def broker_is_replaced(self):
        """It returns without data, if others have all of it (`test_replaced_broker.py`)."""
        kafka = self.world.kafka
        able = [
            b
            for b in sorted(kafka.brokers)
            if all(state.isr - {b} for state in kafka.states.values() if b in state.replicas)
        ]
        if not able or len(kafka.brokers) < 3:
            return None
        broker = self.more.choice(able)
        self._dies(broker, seconds := self.more.choice((3, 15, 60)))
        kafka.wipe(broker)
        return f"broker {broker} is replaced, and is back after {seconds} s with an empty disk"

    def disk_fills(self):
        """Something else takes the room of a broker for a while."""
        kafka = self.world.kafka
        broker = self.more.choice(sorted(kafka.brokers))
        free, seconds = self.more.choice((0, 3, 30)) * MIB, self.more.choice((20, 60, 200))
        kafka.fill(broker, free)
        self.world.loop.call_later(seconds, kafka.capacity.pop, (broker, kafka.PATH), None)
        return f"the disk of broker {broker} has {free} bytes left for {seconds} s"

    def rights_are_denied(self):
        """An ACL is missing for a while (`test_reading.py::TestRefusals`)."""
        kafka, topic = self.world.kafka, self._topic()
        if topic is None:
            return None
        broker, seconds = self.more.choice(sorted(kafka.brokers)), self.more.choice((3, 20, 90))
        kind, denied, what = self.more.choice(
            (
                ("describe", kafka.hidden, topic),
                ("describe the configs of", kafka.forbidden, topic),
                ("describe the configs of broker", kafka.forbidden, BrokerId(broker)),
                ("alter", kafka.unalterable, topic),
            )
        )
        denied.add(what)
        self.world.judge.statuses.denied.add(what)
        self.world.loop.call_later(seconds, lambda: denied.difference_update({what} - kafka.denied_for_good))
        return f"the operator may not {kind} {what} for {seconds} s"

    def producers_write(self):
        topic = self._topic()
        if topic is None:
            return None
        rate, seconds = self.more.choice((MIB // 10, MIB // 2, 2 * MIB)), self.more.choice((5, 20, 60))
        self.world.kafka.produce(topic, rate, seconds)
        return f"producers write {rate} bytes/s to each partition of {topic} for {seconds} s"

    def held_up_for_good(self, body, reason):
        """Also a rebalance that selects a topic which the operator may not describe.

        A topic whose configs may not be described holds up only its own partitions, but for a plan that changes its
        replication factor.
        """
        if super().held_up_for_good(body, reason):
            return True
        selected = [re.compile(pattern) for pattern in body["spec"]["topics"]["include"]]
        denied = self.world.kafka.denied_for_good
        concerned = {topic for topic in denied if any(pattern.fullmatch(topic) for pattern in selected)}
        unplanned = concerned & self.world.kafka.hidden or "replicationFactor" in body["spec"]
        said = "TopicForbidden" in message(body)
        return bool(concerned) and bool(said or (reason == "KafkaAuthorizationFailed" and unplanned))

    def allow_all(self):
        self.world.kafka.denied_for_good.clear()
        self.world.kafka.heal()

    def calm_down(self):
        """Nothing is denied for a while any more, and others end the reassignments that are stuck."""
        kafka = self.world.kafka
        kafka.heal()
        for tp, state in sorted(kafka.states.items()):
            if state.wedged:
                self._cancel_when_possible(tp)
        for key, body in self.world.rebalances():
            if key[0] == REBALANCES and body["spec"]["approval"].get("planHash") == "0" * 12:
                self.world.kube.edit(*key, approval={"policy": "Manual"})

    def _cancel_when_possible(self, tp):
        """Kafka refuses it while none of the original replicas is in sync."""
        kafka = self.world.kafka
        if tp in kafka.states and kafka.states[tp].wedged:
            self.world.note(f"*** others cancel {tp}, which is stuck: {kafka._alter(tp, None)}")
            self.world.loop.call_later(1, self._cancel_when_possible, tp)
