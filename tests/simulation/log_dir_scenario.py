"""The additional events in a world whose brokers have several log dirs. They use a separate random stream."""

from tests.simulation.brokers import MIB
from tests.simulation.scenario import Scenario

from kafka_rebalance.execution.reassignment_throttle import LOG_DIR_RATE


class LogDirScenario(Scenario):
    """Rebalances have ``goals.logDirs`` more often than not."""

    def __init__(self, world):
        super().__init__(world)
        self.dir_draw = world.log_dir_random
        self.happenings += [
            (4, self.move_between_log_dirs_of_others),
            (1, self.cancellation_between_log_dirs_of_others),
            (2, self.log_dir_fails),
            (4, self.broker_dies_while_copying),
            (2, self.log_dirs_are_denied),
            (2, self.log_dir_rate_of_others),
        ]

    # The world at the start --------------------------------------------------------------------------------------

    def prepare(self):
        super().prepare()
        draw, kafka = self.dir_draw, self.world.kafka
        if draw.random() < 0.6:  # as after more log dirs were added
            kafka.where = {(tp, b): kafka.dirs[b][0] for tp, b in kafka.where}
        if draw.random() < 0.5:  # little room
            for b, paths in kafka.dirs.items():
                for path in paths:
                    kafka.capacity[b, path] = kafka.taken(b, path) + draw.choice((25, 45, 80)) * MIB
        if draw.random() < 0.3:
            for b in draw.sample(sorted(kafka.brokers), 2):
                kafka.values[b, LOG_DIR_RATE] = value = str(draw.choice((2, 200)) * MIB)
                self.world.rates_before[b, LOG_DIR_RATE] = value

    def spec(self):
        spec, draw = super().spec(), self.dir_draw
        spec.setdefault("strategy", "MinimalMovement")
        spec["goals"] = {}
        if draw.random() < 0.85:
            spec["goals"] = {"logDirs": {"band": draw.choice(("1%", "10%", "60%"))}}
            if draw.random() < 0.5:
                dirs = self.world.kafka.dirs
                several = [b for b in sorted(dirs) if len(dirs[b]) > 1]
                broker = draw.choice(several if several and draw.random() < 0.9 else sorted(dirs))
                path = draw.choice(dirs[broker])
                spec["goals"]["logDirs"]["drain"] = [{"broker": int(broker), "path": path}]
            if draw.random() < 0.6:
                spec = {key: spec[key] for key in ("topics", "goals")} | {"strategy": "LogDirs"}
        return {"brokers": {}, "replicationFactor": None} | spec

    def execution(self):
        return super().execution() | {"maxPerBroker": {"betweenLogDirs": self.dir_draw.choice((1, 1, 2, 5))}}

    def throttle(self):
        throttle = super().throttle()
        if "unlimited" not in throttle and self.dir_draw.random() < 0.8:
            throttle = throttle | {"logDirRate": self.dir_draw.choice(("512Ki", "1Mi", "4Mi", "16Mi"))}
        return throttle

    # Others ----------------------------------------------------------------------------------------------------------

    def _request_move(self, key, path):
        """As another tool does."""
        kafka = self.world.kafka
        kafka.by = None
        answer = kafka._alter_log_dir(key, path)
        self.world.judge.log_dirs.answered(None, {key: path}, {key: answer})
        return f"others move {key[0]} on {key[1]} to {path}: {answer}"

    def move_between_log_dirs_of_others(self):
        kafka = self.world.kafka
        able = [key for key in sorted(kafka.where) if key[1] in kafka.brokers and len(kafka.dirs[key[1]]) > 1]
        if not able:
            return None
        key = self.dir_draw.choice(able)
        path = self.dir_draw.choice(kafka.dirs[key[1]])
        capacity = kafka.capacity.get((key[1], path))
        if capacity is not None and kafka.taken(key[1], path) + kafka.bytes_of[key[0]] > capacity:
            return None
        return self._request_move(key, path)

    def cancellation_between_log_dirs_of_others(self):
        kafka = self.world.kafka
        flying = [key for key in sorted(kafka.future) if key[1] in kafka.brokers]
        if not flying:
            return None
        key = self.dir_draw.choice(flying)
        return self._request_move(key, kafka.where[key])

    def log_dir_rate_of_others(self):
        draw, kafka, judge = self.dir_draw, self.world.kafka, self.world.judge
        judge.edited_throttle = True
        broker = draw.choice(sorted(kafka.brokers))
        if draw.random() < 0.5:
            kafka.values[broker, LOG_DIR_RATE] = value = str(draw.choice((MIB // 4, 3 * MIB)))
            judge.rates_of_others[broker, LOG_DIR_RATE].add(value)
            return f"others set the rate between the log dirs of {broker} to {value}"
        kafka.values.pop((broker, LOG_DIR_RATE), None)
        judge.rates_of_others[broker, LOG_DIR_RATE].add(None)
        return f"others delete the rate between the log dirs of {broker}"

    # Faults ----------------------------------------------------------------------------------------------------------

    def log_dirs_are_denied(self):
        kafka, loop = self.world.kafka, self.world.loop
        kafka.deny(denied=True)
        seconds = self.dir_draw.choice((3, 20, 90))
        loop.call_later(seconds, lambda: kafka.deny(denied=False))
        return f"log dirs may not be described for {seconds} s"

    def broker_dies_while_copying(self):
        """A broker with a future replica dies; often another move is requested then."""
        kafka, draw = self.world.kafka, self.dir_draw
        copying = sorted({b for _, b in kafka.future} & set(kafka.brokers))
        if not copying or len(kafka.brokers) < 3:
            return None
        broker = draw.choice(copying)
        self._dies(broker, seconds := draw.choice((1, 8, 30, 200)))
        then = draw.choice((self.delete, self.edit_plan, lambda: None))
        self.world.loop.call_later(draw.choice((0.5, 3)), lambda: self.world.note(f"*** {then()}"))
        return f"broker {broker} dies for {seconds} s in the middle of a copy between its log dirs"

    def log_dir_fails(self):
        """The broker starts again without it, and some time later with it (`test_offline_log_dir.py::TestOffline`)."""
        kafka, draw = self.world.kafka, self.dir_draw
        able = [
            (b, path)
            for b in sorted(kafka.brokers)
            for path in kafka.dirs[b]
            if sum((b, other) not in kafka.offline for other in kafka.dirs[b]) > 1 and (b, path) not in kafka.offline
        ]
        if not able or len(kafka.brokers) < 3:
            return None
        failed = broker, path = draw.choice(able)
        seconds = draw.choice((15, 60, 200))
        self.world.judge.log_dirs.failed.add(broker)
        kafka.offline.add(failed)
        self._dies(broker, 4)
        self.world.loop.call_later(seconds, self._log_dir_is_back, failed)
        return f"broker {broker} starts again without {path} for {seconds} s"

    def _log_dir_is_back(self, failed):
        broker, path = failed
        kafka = self.world.kafka
        if failed in kafka.offline:
            self.world.note(f"*** {path} of {broker} is back")
            kafka.offline.discard(failed)
            if broker in kafka.brokers:
                self._dies(broker, 4)
