"""What other tools do in Kafka: reassignments, elections, topics and throttles, drawn from the seed."""

import functools

from tests.simulation.brokers import MIB

from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, REPLICATION_RATES
from kafka_rebalance.kafka.ports import AlterCode
from kafka_rebalance.model.topology import BrokerId


def of_a_topic(event):
    """The event, with a topic. It cannot happen if there is none."""

    @functools.wraps(event)
    def drawn(tools):
        topic = tools._topic()
        return event(tools, topic) if topic is not None else None

    return drawn


class OtherTools:
    """Each event returns what happened, or None if it could not happen."""

    def __init__(self, world):
        self.world, self.draw = world, world.random

    def _partition(self):
        return self.draw.choice(sorted(self.world.kafka.states)) if self.world.kafka.states else None

    def move_of_others(self):
        kafka, tp = self.world.kafka, self._partition()
        if tp is None or kafka.states[tp].in_flight or len(kafka.brokers) < len(kafka.states[tp].replicas):
            return None
        to = self.draw.sample(sorted(kafka.brokers), len(kafka.states[tp].replicas))
        return f"others move {tp} to {to}: {kafka._alter(tp, to)}"

    def cancel_of_others(self):
        flying = sorted(tp for tp, state in self.world.kafka.states.items() if state.in_flight)
        if not flying:
            return None
        tp = self.draw.choice(flying)
        return f"others cancel {tp}: {self.world.kafka._alter(tp, None)}"

    def election_of_others(self):
        kafka = self.world.kafka
        done = [str(tp) for tp in sorted(kafka.states) if kafka._elect(tp) is AlterCode.OK]
        return f"Kafka elects preferred leaders of {done}"

    def _topic(self):
        topics = sorted({tp.topic for tp in self.world.kafka.states})
        return self.draw.choice(topics) if topics else None

    @of_a_topic
    def topic_is_deleted(self, topic):
        self.world.kafka.delete_topic(topic)
        return f"topic {topic} is deleted"

    @of_a_topic
    def topic_is_created_again(self, topic):
        kafka = self.world.kafka
        if len(kafka.brokers) < 3:
            return None
        count = sum(tp.topic == topic for tp in kafka.states)
        kafka.delete_topic(topic)
        rows = [self.draw.sample(sorted(kafka.brokers), 2) for _ in range(count)]
        kafka.make_topic(topic, rows, MIB, 1)
        return f"topic {topic} is created again: {rows}"

    @of_a_topic
    def partition_is_added(self, topic):
        self.world.kafka.add_partition(topic)
        return f"topic {topic} has one more partition"

    def throttle_of_others(self):
        """A lower rate, or what Kafka's own tool does when it ends (`test_throttle_tool.py::TestVerify`)."""
        draw, kafka, judge = self.draw, self.world.kafka, self.world.judge
        judge.edited_throttle = True
        if draw.random() < 0.5:
            broker, name = draw.choice(sorted(kafka.brokers)), draw.choice(REPLICATION_RATES)
            kafka.values[broker, name] = value = str(draw.choice((MIB // 2, 3 * MIB)))
            judge.rates_of_others[broker, name].add(value)
            return f"others set {name} of {broker} to {value}"
        for broker in kafka.brokers:
            for name in REPLICATION_RATES:
                kafka.values.pop((broker, name), None)
        for broker in (*kafka.brokers, *kafka.dead):
            for name in REPLICATION_RATES:
                judge.rates_of_others[BrokerId(broker), name].add(None)
        topic = self._topic()
        for name in LIST_NAMES:
            kafka.values.pop((topic, name), None)
        return f"Kafka's tool deletes the rates of all brokers, and the lists of {topic}"

    @of_a_topic
    def entry_of_others(self, topic):
        """Another tool lists a replica of its own, or one that we may have listed."""
        entry = f"{self.draw.randint(0, 3)}:{self.draw.choice(sorted(self.world.kafka.brokers))}"
        name, values = self.draw.choice(LIST_NAMES), self.world.kafka.values
        entries = [item for item in values.get((topic, name), "").split(",") if item]
        if entry not in entries:
            values[topic, name] = ",".join([*entries, entry])
            self.world.judge.entries_of_others[topic, name].add(entry)
        return f"others list {entry} in {name} of {topic}"

    def remove_rates(self):
        """Remove the rates that other tools have set: a rate below ours stops new copies while it is set."""
        kafka, judge = self.world.kafka, self.world.judge
        for key, values in judge.rates_of_others.items():
            if kafka.values.get(key) in values - {None}:
                kafka.values.pop(key)
                values.add(None)
