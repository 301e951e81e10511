"""Reports what is left in Kafka and in the records when no resource exists any more."""

from tests.simulation.process import at_once

from kafka_rebalance.execution.reassignment_throttle import LIST_NAMES, RATE_NAMES
from kafka_rebalance.kube.ledger_store import LedgerStore
from kafka_rebalance.kube.store import RunStore


class LeftoverJudge:
    """``judge``: it knows what others have set, and which brokers may stay cordoned."""

    def __init__(self, world, judge):
        self.world, self.judge = world, judge
        self._too_late = set()

    def recorded(self, run, *, late):
        """One that never began may be carried out after its resource is gone: it moves nothing, and is swept."""
        if late and run.open and run.started_at is None and self.world.body_of(run.uid) is None:
            self._too_late.add(run.uid)

    def end(self):
        """Nothing of ours may be left: no throttle, no cordon, no ledger, no open run."""
        self._configs()
        self._records()

    def _configs(self):
        judge, kafka = self.judge, self.world.kafka
        for (where, name), value in kafka.values.items():
            if name in LIST_NAMES:
                left = set(filter(None, value.split(","))) - judge.entries_of_others[where, name]
                if left:
                    judge.breach(f"{name} of {where} still has {sorted(left)}")
            if name in RATE_NAMES:
                allowed = {self.world.rates_before.get((where, name))} | judge.rates_of_others[where, name]
                if value not in allowed:
                    judge.breach(f"{name} of {where} is {value}, and was {allowed}")
            if name == "cordoned.log.dirs" and value and where not in judge.emptied:
                judge.breach(f"broker {where} is still cordoned")
        for (where, name), value in self.world.rates_before.items():
            if (where, name) not in kafka.values and None not in judge.rates_of_others[where, name]:
                judge.breach(f"{name} of {where} is gone, and was {value}")

    def _records(self):
        kube = self.world.kube
        for key, ledger in at_once(LedgerStore(kube).load_all()).items():
            if ledger is None or any(
                ledger.get(part) for part in ("brokers", "topics", "entries", "others", "cordons")
            ):
                self.judge.breach(f"the ledger of {key} has {ledger}")
        for run in at_once(RunStore(kube).list_unshared()):
            if run.open and run.uid not in self._too_late:
                self.judge.breach(f"the run of {run.uid} is open")
