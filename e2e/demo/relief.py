"""Act 3: replicas and leaders are even, and yet most is written to one broker. A rebalance by load evens that.

What is written to a broker is what it counts itself, read over JMX. Sampler, Spark and planner do not see these
counters: they know sizes and offsets.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from e2e.bench.broker_metrics import BrokerMetrics, BrokerRates
from e2e.demo.facts import check_replicas, check_tidy, observe
from e2e.demo.layout import spread_over
from e2e.demo.prompt import Prompt
from e2e.demo.screen import Screen
from e2e.demo.stage import NAMESPACE, Stage

_TOPIC = "clicks"
_NAME = "even-load"
_RECORD_BYTES = 16_384
_BAND = 10
"""As in the example, in percent of a share."""
_NOISE = 10
"""In percent of a share: the seconds in which the brokers were measured are not exactly those of the samples."""
_MEASURED = {"LeaderBytesIn": "from producers", "BytesIn": "with replication"}


@dataclass(frozen=True)
class Skew:
    """How the traffic of one topic is skewed, and for how long it is sampled, before the rebalance and after it.

    `heat` says how many times as much is written to the partitions that a broker leads at first; those of the other
    brokers get `quiet_rate` records per second each.
    """

    partitions: int
    heat: Mapping[int, int]
    quiet_rate: float
    samples: int
    seconds_between: int
    minimum_coverage: str

    @property
    def seconds(self) -> int:
        """From the first sample to the last."""
        return (self.samples - 1) * self.seconds_between


class Relief:
    """Skews the traffic, measures, rebalances, and measures again."""

    def __init__(self, stage: Stage, screen: Screen, prompt: Prompt, skew: Skew) -> None:
        self._stage = stage
        self._kafka = stage.kafka
        self._screen = screen
        self._prompt = prompt
        self._skew = skew

    def run(self, *, compare: bool = False) -> None:
        """The whole act, without its heading. With `compare`, samples are taken afterwards too, and a model is made.

        Those who have no JMX compare what was predicted with these samples.
        """
        self._start_traffic()
        metrics = BrokerMetrics(self._kafka)
        try:
            before = metrics.while_(self._sample)
            self._show(before=before)
            self._prompt.model()
            self._rebalance()
            after = metrics.while_(self._sample) if compare else metrics.over(self._skew.seconds)
        finally:
            metrics.close()
        self._show(before=before, after=after)
        self._judge(before, after)
        if compare:
            self._compare()

    def _start_traffic(self) -> None:
        skew = self._skew
        rows = spread_over(len(self._kafka.brokers), skew.partitions)
        self._stage.create_topic(_TOPIC, rows)
        led: dict[int, list[tuple[str, int]]] = {}
        for number, (leader, *_) in enumerate(rows):
            led.setdefault(skew.heat.get(leader, 1), []).append((_TOPIC, number))
        for factor, partitions in led.items():
            rate = factor * skew.quiet_rate * len(partitions)
            self._stage.add_traffic(partitions, rate=rate, record_bytes=_RECORD_BYTES)
        each = len(rows) // len(self._kafka.brokers)
        self._screen.say(
            f"topic {_TOPIC} has {len(rows)} partitions; each broker leads {each} of them and follows {2 * each}"
        )
        for broker, factor in skew.heat.items():
            self._screen.say(
                f"producers write {factor} times as much to each of the {each} partitions that broker {broker} leads "
                "as to others"
            )

    def _sample(self) -> None:
        self._prompt.sample(self._skew.samples, every=self._skew.seconds_between)

    def _rebalance(self) -> None:
        self._prompt.apply(f"{_NAME}.yaml", minimumCoverage=self._skew.minimum_coverage)
        self._screen.say(
            "the first plan by load after an installation takes longer: it compiles the search, which is kept"
        )
        self._prompt.wait_state(_NAME, "AwaitingApproval")
        self._prompt.get()
        self._prompt.tell("kafka-rebalance", "approve", _NAME, "-n", NAMESPACE, "--yes")
        self._prompt.watch(_NAME)
        self._prompt.get()

    def _compare(self) -> None:
        """The model must have no samples of the time before the end of the run."""
        self._prompt.model("--window", f"{self._skew.seconds}s")
        (model,) = self._stage.lake.glob("models/*/load-model.parquet")
        self._prompt.tell("kafka-rebalance", "status", _NAME, "-n", NAMESPACE, "--load-model", str(model))

    def _show(self, **moments: BrokerRates) -> None:
        columns = [
            (f"{_MEASURED[resource]}, {when}", _rates(rates, resource))
            for resource in _MEASURED
            for when, rates in moments.items()
        ]
        rows = [
            [f"{broker} ({self._kafka.racks[broker]})", *(_cell(rates, broker) for _, rates in columns)]
            for broker in self._kafka.brokers
        ]
        self._screen.say(
            "each broker counts BytesInPerSec (from producers) and ReplicationBytesInPerSec; both counters were read "
            f"twice over JMX, at least {self._skew.seconds} s apart"
        )
        title = "Written to each broker, by its own counters (% of an equal share)"
        self._screen.table(title, ["broker (rack)", *(head for head, _ in columns)], rows)

    def _judge(self, before: BrokerRates, after: BrokerRates) -> None:
        plan = self._prompt.check_succeeded(_NAME)["plan"]
        load = plan["load"]
        self._screen.check(
            "the plan was made from Spark's load model",
            holds=plan.get("dataSource") == "LoadModel",
            otherwise=plan.get("dataSource"),
        )
        for row in load["resources"]:
            self._judge_resource(row, before, after)
        self._screen.say(
            f"Plan: {plan['replicaMoves']} replica moves, {plan['leaderMoves']} preferred leaders change. "
            f"Even counts alone need {plan['lowerBound']} moves. "
            f"The plan copies {load['gap']} times the lower bound of bytes for even load."
        )
        facts = observe(self._kafka)
        check_replicas(self._screen, self._kafka, facts)
        check_tidy(self._screen, facts)

    def _judge_resource(self, row: Any, before: BrokerRates, after: BrokerRates) -> None:
        resource, limit = row["resource"], 100 + _BAND + _NOISE
        was, became = (_peak(_rates(rates, resource)) for rates in (before, after))
        self._screen.check(
            f"{resource}: a broker got {was:.0f}% of its share before, and none got more than {became:.0f}% after "
            f"(the band is {_BAND}%; up to {limit}% passes, because the measurement is short)",
            holds=was > limit >= became,
            otherwise=row,
        )
        self._screen.check(
            f"{resource}: the plan predicted {row['peakBefore']}% and {row['peakAfter']}%",
            holds=abs(row["peakBefore"] - was) <= 2 * _NOISE and abs(row["peakAfter"] - became) <= _NOISE,
            otherwise=f"measured were {was:.0f}% and {became:.0f}%",
        )


def _rates(rates: BrokerRates, resource: str) -> Mapping[int, float]:
    return {"LeaderBytesIn": rates.produced, "BytesIn": rates.written}[resource]


def _share(rates: Mapping[int, float], broker: int) -> float:
    """The rate of a broker in percent of an equal share."""
    return 100 * rates[broker] * len(rates) / sum(rates.values())


def _peak(rates: Mapping[int, float]) -> float:
    return max(_share(rates, broker) for broker in rates)


def _cell(rates: Mapping[int, float], broker: int) -> str:
    return f"{rates[broker] / 1024:.0f} KiB/s {_share(rates, broker):4.0f}%"
