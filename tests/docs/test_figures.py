"""The figures of README.md, docs/comparison.md and decision 21 are those of the benchmarks."""

import re
from decimal import ROUND_HALF_UP, Decimal

import pytest
import yaml
from tests.docs.pages import ROOT

PLANNING, LOAD, SCHEDULE, THROTTLE = (
    (ROOT / "docs" / name).read_text(encoding="utf-8")
    for name in ("benchmarks-planning.md", "benchmarks-load.md", "benchmarks-schedule.md", "benchmarks.md")
)
COMPARISON = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
DECISION = (ROOT / "docs" / "decisions" / "0021-load-by-a-local-search.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
TOOLS = ("this planner", "Kafka's `--generate`", "KAFKA-19048 greedy", "Cruise Control")
IN_README = dict(
    zip(("this operator", "Kafka's `--generate`", "greedy of KAFKA-19048", "Cruise Control"), TOOLS, strict=True)
)
CLUSTERS = (("100,000", "300", "add"), ("100,000", "300", "drift"), ("200,000", "1,000", "drift"))
"""Of the table in docs/comparison.md, from top to bottom."""


def rows(text: str) -> list[list[str]]:
    """The cells of all tables of a page."""
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines() if line.startswith("|")]


def measured(cluster: tuple[str, str, str], tool: str) -> tuple[str, str]:
    """Moves as a multiple of the bound, and seconds."""
    partitions, brokers, what = cluster
    if tool == "Cruise Control":
        (row,) = [row for row in rows(PLANNING) if row[0] == f"{what}, {partitions} × {brokers}"]
        return row[4], row[1]
    (row,) = [row for row in rows(PLANNING) if row[:4] == [*cluster, tool]]
    return row[7], row[4].split()[0]


def assert_rounded(shown: str, figure: str) -> None:
    """The figure with as many decimals as are shown."""
    place = Decimal(shown)
    assert place == Decimal(figure).quantize(place, ROUND_HALF_UP)


def between(text: str, *, before: str, after: str) -> str:
    return text.partition(before)[2].partition(after)[0]


@pytest.mark.parametrize("at", range(len(CLUSTERS)), ids=[" ".join(cluster) for cluster in CLUSTERS])
def test_the_comparison(at: int) -> None:
    """Two rows for each cluster: moves and seconds."""
    text = between(COMPARISON, before="## Measured", after="KAFKA-19048 describes")
    table = [row[2:] for row in rows(text) if row[1] in ("moves", "seconds")]
    for number, tool in enumerate(TOOLS):
        for shown, figure in zip(table[2 * at : 2 * at + 2], measured(CLUSTERS[at], tool), strict=True):
            assert_rounded(shown[number], figure)


def test_the_readme() -> None:
    found = {row[0]: row[1:] for row in rows(README) if row[0] in IN_README}
    assert found.keys() == IN_README.keys()
    for name, tool in IN_README.items():
        for shown, figure in zip(found[name], measured(CLUSTERS[1], tool), strict=True):
            assert_rounded(shown, figure)


def test_the_columns_of_the_readme() -> None:
    """As kubectl prints them."""
    crd = yaml.safe_load((ROOT / "crds" / "kafkarebalances.kafkarebalance.dev.yaml").read_text(encoding="utf-8"))
    columns = [row["name"] for row in crd["spec"]["versions"][0]["additionalPrinterColumns"] if not row.get("priority")]
    header = between(README, before="kafkarebalances.kafkarebalance.dev -n kafka\n", after="\n")
    assert header.split() == [name.upper() for name in ("Name", *columns)]


def test_plans_by_load() -> None:
    """Bytes and seconds of the search and of the greedy planner."""
    text = " ".join(between(COMPARISON, before="[Plans by load]", after="The brokers enforce").split())
    for who in ("search", "greedy"):
        (row,) = [row for row in rows(LOAD) if row[:2] == ["100,000 on 300, 10 %", who]]
        assert row[5] in text
        assert f"{row[2]} s" in text
    for cluster, words in (("10,000 on 100", "{} % more"), ("100,000 on 300", "{} % less")):
        copied = {row[1]: row[5] for row in rows(LOAD) if row[0] == f"{cluster}, mixed capacities, 10 %"}
        search, greedy = (int(copied[who].split()[0].replace(",", "")) for who in ("search", "greedy"))
        assert words.format(round(100 * abs(greedy - search) / search)) in text


def test_the_decision_on_plans_by_load() -> None:
    """With equal capacities: what the greedy planner copies, as multiples of what the search copies."""
    copied: dict[str, dict[str, int]] = {}
    for row in rows(LOAD):
        if row[1] in ("search", "greedy") and "mixed" not in row[0]:
            copied.setdefault(row[0], {})[row[1]] = int(row[5].split()[0].replace(",", ""))
    ratios = [found["greedy"] / found["search"] for found in copied.values()]
    assert f"it moves {min(ratios):.1f} to {max(ratios):.1f} times the bytes" in " ".join(DECISION.split())


def test_the_throttle() -> None:
    """Compared with Kafka's tool at the same rate."""
    table = rows(between(THROTTLE, before="### Achieved rate", after="A copy from one broker"))
    ratios = [Decimal(row[4]) for row in table[2:]]
    assert f"{min(ratios)} to {max(ratios)}\ntimes as fast" in COMPARISON


def test_without_a_throttle() -> None:
    """What the small steps cost: the rows without an effective throttle, by R."""
    table = rows(between(SCHEDULE, before="<!-- kafka tool -->", after="<!-- end of kafka tool -->"))
    text = re.sub(r"\s+", " ", COMPARISON)
    for r in (1, 3):
        found = [row for row in table[2:] if row[1] in ("none", "1000 MiB/s") and row[2].startswith(f"{r},")]
        ratios = [Decimal(row[5]) for row in found]
        times = f"{min(ratios)} to {max(ratios)} times as long"
        assert times in text
