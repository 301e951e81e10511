"""The page of the planning benchmark, computed from the values of a run."""

import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from benchmarks.clusters import SCENARIOS
from benchmarks.published import CRUISE_CONTROL

Found = dict[str, Any]


@dataclass(frozen=True)
class Limit:
    """Upper limits for a row; ``gap`` is in percent of the lower bound."""

    seconds: float
    megabytes: float = float("inf")
    gap: float = float("inf")

    def met(self, row: Found) -> bool:
        """Whether the row is within the limits: the median of its seconds and the peak memory of the process."""
        small = row.get("peakMB", 0) <= self.megabytes
        return median(row) <= self.seconds and small and _gap(row) <= self.gap


MUST = {
    10_000: Limit(0.10),
    100_000: Limit(0.8, gap=0.05),
    200_000: Limit(1.5),
    1_000_000: Limit(10, 700),
}
AIM = {
    10_000: Limit(0.03),
    100_000: Limit(0.3, gap=0),
    200_000: Limit(0.6),
    1_000_000: Limit(3, 400, 0.02),
}
OTHER = {
    (10_000, "flow"): (Limit(2), Limit(0.5)),
    (10_000, "uneven"): (Limit(2), Limit(0.5)),  # the construction misses the bound, so the exact search runs
    (1_000_000, "planned"): (Limit(0.5), Limit(0.3)),
    (1_000_000, "file"): (Limit(20), None),
}
"""Rows with their own limits."""

TOOLS = {
    "planner": "this planner",
    "generate": "Kafka's `--generate`",
    "greedy": "KAFKA-19048 greedy",
    "flow": "exact flow",
    "mip": "MIP (SCIP)",
}

_INTRODUCTION = """\
# How fast plans are made

`make bench-plan` writes this page, its plots and [every value](../benchmarks/results/planning.json). Input and output
are arrays: the times include encoding, certificate, leaders and follower order. Only the row `file` includes reading
and writing files. Each row is a separate process on one core, after a small plan to warm up. Seconds are the median
of up to five runs, followed by the minimum and the maximum. MB (10^6 bytes) is the peak memory of the whole process,
including interpreter, numpy and input; `added` is the part of it that was not used before the first run. Code that
the planner does not share verifies every plan by counting: racks, distinct and eligible brokers, even counts, moves.
"""

_LEGEND = """\
`gap` is the number of moves above the bound, in percent of the bound. `leaders` is the difference between the most
and the fewest leaders of a broker. `changes` is the number of partitions with another preferred leader. `pairs` is
the largest count of an ordered pair (leader, second) and the sum of the squared counts. `load` is the machine's load
average before and after the row. `must` and `aim` are the required and the desired limits: seconds; at a million
partitions also memory and gap; at 100,000 also the gap.
"""

_LIMITS = """\
| partitions × brokers | must | aim |
| --- | --- | --- |
| 10,000 × 100, bound met at once | 0.10 s | 0.03 s |
| 10,000 × 100, decided by exact search (`uneven`, `flow`) | 2 s | 0.5 s |
| 100,000 × 300 | 0.8 s, gap ≤ 0.05 % | 0.3 s, gap 0 |
| 200,000 × 1,000 | 1.5 s | 0.6 s |
| 1,000,000 × 1,000 | 10 s, 700 MB | 3 s, 400 MB, gap ≤ 0.02 % |
| `planned`, 1,000,000 | 0.5 s | 0.3 s |
| `file`, 1,000,000 | 20 s | |
"""

_COMPARISON = """\
## Comparison with other planners

The others ran on the same clusters, in the same run. `× bound` is the number of moves divided by the lower bound for
equally balanced plans. A value below 1 means that the plan left counts uneven, or moved nothing at all. `counts` and
`leaders` are the differences between the most and the fewest of a broker.

- **Kafka's `--generate`** is `StripedReplicaPlacer` of Kafka's own jars, called in one Java process, topic by topic
  (64 partitions each). The first run and the start of Java are not counted. It ignores the current placement. Its
  memory is Java's default.
- **KAFKA-19048 greedy** follows the text of the ticket: one copy at a time, largest surplus first, then leaders, then
  seconds. If no copy can move, it stops; the algorithm in the ticket would not terminate.
- **Exact flow** decides replica sets with the network of every partition, and leaders and seconds together. It is the
  reference for all columns, up to 20,000 partitions.
- **MIP** has a variable for each partition and broker, and decides replica sets only.
"""

_PUBLISHED = """\
### Cruise Control

These values are not from this run. They were measured once, on clusters of the same kinds and sizes, on a shared
machine with two cores and a load of 1.5 to 6, with commit dadba67e2 and its rack, replica and leader distribution
goals at a threshold of 1.0; planning time only. Cruise Control plans four resources with arbitrary goals, which this
planner does not.
"""


def median(row: Found) -> float:
    """Median seconds of a row."""
    return statistics.median(row["seconds"])


def page(machine: Found, rows: list[Found]) -> str:
    """The page, as Markdown."""
    ours = [row for row in rows if row["tool"] == "planner" and row["what"] != "goldens"]
    shown = [row for row in ours if row["partitions"] in MUST]
    parts = [
        _INTRODUCTION,
        f"Measured on: {measured_on(machine)}.\n",
        _table(_HEAD, map(_cells, shown)),
        _LEGEND,
        _LIMITS,
        f"`must` is met by {_share(shown, 0)} rows, `aim` by {_share(shown, 1)}. {_goldens(rows)}\n",
        _table(("What", ""), _scenarios()),
        _COMPARISON,
        *(f"![{title}](plots/planning-{name}.svg)\n" for name, title in _PLOTS.items()),
        _table(_COMPARED_HEAD, _compared(rows)),
        _PUBLISHED,
        _table(("cluster", "seconds", "moves", "bound", "× bound", "counts", "leaders"), map(_peer, CRUISE_CONTROL)),
    ]
    return "\n".join(parts)


_PLOTS = {"moves": "Moves as a multiple of the bound", "seconds": "Seconds", "memory": "Peak memory"}

_HEAD = (
    *("partitions", "brokers", "what", "seconds", "MB", "added", "moves", "bound", "gap", "leaders", "changes"),
    *("pairs", "load", "must", "aim"),
)

_COMPARED_HEAD = (
    *("partitions", "brokers", "what", "who", "seconds", "MB", "moves", "× bound", "counts", "leaders", "changes"),
    "pairs",
)


def printed(row: Found) -> str:
    """A row, as printed during the measurement."""
    name = f"{row['partitions']:>9,} x {row['brokers']:>4} {row['what']:>8} {row['tool']:>8}"
    verdict = "".join(f" {word} {_verdict(row, i)}" for i, word in enumerate(("must", "aim")) if _verdict(row, i))
    own = statistics.median(row["cpuSeconds"])
    load = " -> ".join(f"{value:.1f}" for value in row["load"])
    return f"{name}: {_seconds(row)} s, own CPU {own:.3f} s, {row.get('peakMB', 0):.0f} MB, load {load}{verdict}"


def measured_on(facts: Found) -> str:
    """The machine, in one line."""
    load = ", ".join(f"{value:.1f}" for value in facts["load"])
    return (
        f"{facts['cpu']}, {facts['cores']} cores of which one is used, {facts['memoryGB']} GB, "
        f"Python {facts['python']}, numpy {facts['numpy']}, OR-tools {facts['ortools']}; "
        f"load average at the start {load}"
    )


def _goldens(rows: list[Found]) -> str:
    row = next(row for row in rows if row["what"] == "goldens")
    return (
        f"Of the {row['cases']} golden placements {row['exact']} are exact at every level; "
        f"all of them together take {median(row):.2f} s."
    )


def line(cells: Iterable[str]) -> str:
    """A table row."""
    return f"| {' | '.join(cells)} |"


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    return "\n".join(map(line, (head, ["---"] * len(head), *rows))) + "\n"


def _limits(row: Found) -> tuple[Limit | None, Limit | None]:
    own = (row["partitions"], row["what"])
    if row["tool"] != "planner" or row["partitions"] not in MUST:
        return None, None
    return OTHER.get(own) or (MUST[row["partitions"]], AIM[row["partitions"]])


def _verdict(row: Found, which: int) -> str:
    limit = _limits(row)[which]
    return "" if limit is None else "yes" if limit.met(row) else "no"


def _share(rows: list[Found], which: int) -> str:
    verdicts = [verdict for row in rows if (verdict := _verdict(row, which))]
    return f"{verdicts.count('yes')} of {len(verdicts)}"


def _gap(row: Found) -> float:
    return 100 * (row["moves"] - row["bound"]) / max(1, row["bound"])


def _seconds(row: Found) -> str:
    value = median(row)
    digits = 3 if value < 1 else 2 if value < 10 else 1
    few = f"{value:.{digits}f}"
    return (
        few
        if len(row["seconds"]) == 1
        else f"{few} ({min(row['seconds']):.{digits}f}–{max(row['seconds']):.{digits}f})"
    )


def _number(row: Found, name: str) -> str:
    return f"{row[name]:,.0f}" if name in row else ""


def _pairs(row: Found) -> str:
    return f"≤ {row['mostPairs']}, {row['pairSquares']:,}" if "pairSquares" in row else ""


def _cells(row: Found) -> list[str]:
    gap = _gap(row)
    return [
        f"{row['partitions']:,}",
        f"{row['brokers']:,}",
        row["what"],
        _seconds(row),
        _number(row, "peakMB"),
        _number(row, "addedMB"),
        _number(row, "moves"),
        _number(row, "bound"),
        f"{gap:.3f} %" if gap else "0",
        _number(row, "leaderSpread"),
        _number(row, "leaderChanges"),
        _pairs(row),
        " → ".join(f"{value:.1f}" for value in row["load"]),
        _verdict(row, 0),
        _verdict(row, 1),
    ]


def _scenarios() -> list[tuple[str, str]]:
    return [
        *((f"`{name}`", text) for name, text in SCENARIOS.items()),
        ("`planned`", "the state after the plan of `add`: the planner must find that nothing has to move"),
        ("`flow`", "`drift`, with replica sets decided by the flow over every partition"),
        ("`file`", "the whole command, from a JSON file of the cluster of `add` to Kafka's JSON; one run"),
    ]


def _compared(rows: list[Found]) -> Iterable[list[str]]:
    bounds = {_place(row): row["bound"] for row in rows if row["tool"] == "planner"}
    order = {tool: i for i, tool in enumerate(TOOLS)}
    others = {_place(row) for row in rows if row["tool"] != "planner"}
    for row in sorted((row for row in rows if _place(row) in others), key=lambda r: (*_place(r), order[r["tool"]])):
        ratio = f"{row['moves'] / bounds[_place(row)]:.3f}" if "moves" in row else "none found"
        yield [
            f"{row['partitions']:,}",
            f"{row['brokers']:,}",
            row["what"],
            TOOLS[row["tool"]],
            _seconds(row),
            _number(row, "peakMB"),
            _number(row, "moves"),
            ratio,
            _number(row, "replicaSpread"),
            _number(row, "leaderSpread"),
            _number(row, "leaderChanges"),
            _pairs(row),
        ]


def _place(row: Found) -> tuple[int, str]:
    return row["partitions"], row["what"]


def _peer(row: Found) -> list[str]:
    return [
        f"{row['what']}, {row['partitions']:,} × {row['brokers']:,}",
        str(row["seconds"]),
        f"{row['moves']:,}",
        f"{row['bound']:,}",
        f"{row['moves'] / row['bound']:.3f}",
        str(row["replicaSpread"]),
        str(row["leaderSpread"]),
    ]
