"""The release lines of Kafka: the bench pins those that are on record, and a page says where they differ."""

from pathlib import Path

from e2e.bench.kafka_jars import VERSIONS
from tests.contract import differences

from kafka_rebalance.model.kafka_version import RECORDED

PAGE = Path(__file__).parents[2] / "docs" / "kafka-behaviour.md"


def test_recorded_are_the_versions_that_the_contract_suite_runs_on():
    assert set(RECORDED) == set(VERSIONS)


def test_the_page_has_the_table_of_differences():
    lines = [line.strip("| ").split(" | ") for line in PAGE.read_text(encoding="utf-8").splitlines()]
    (head,) = [cells for cells in lines if cells[0] == "What differs"]
    assert head[2:] == [VERSIONS[line] for line in RECORDED]
    expected = {name: line for name, line in vars(differences).items() if name.isupper()}
    shown = {cells[1].strip("`"): cells[2:] for cells in lines if cells[-1] == "yes" and len(cells) == len(head)}
    assert shown == {
        name: ["yes" if family >= first else "no" for family in RECORDED] for name, first in expected.items()
    }
