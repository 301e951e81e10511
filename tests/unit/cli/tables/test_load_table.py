"""What plan and explain print of the load of brokers."""

from kafka_rebalance.cli.tables.console import plain_console
from kafka_rebalance.cli.tables.load_table import load_document, load_sentences, load_table
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.model.load_outcome import LoadOutcome, OutsideBroker, OutsideReason, ResourceBalance
from kafka_rebalance.model.topology import BrokerId

BROKERS = tuple(BrokerId(b) for b in range(25))


def row(resource: LoadResource, hot: int) -> ResourceBalance:
    """Every share is 100; this broker has 300 before and 120 after, another one nothing."""
    before, after = [100] * 25, [100] * 25
    before[hot], after[hot], before[0] = 300, 120, 0
    return ResourceBalance(resource, 10, 300, 120, 1, 1, (100,) * 25, tuple(before), tuple(after))


FOUND = LoadOutcome(
    (row(LoadResource.DISK, 7), row(LoadResource.BYTES_IN, 9)),
    data=226,
    data_lower_bound=200,
    brokers=BROKERS,
    outside=(OutsideBroker(BrokerId(7), LoadResource.DISK, 120, 110, OutsideReason.RACK_RULE),),
)


def test_the_furthest_above_are_first(capsys) -> None:
    """In percent of their shares, which fit a terminal with all four resources."""
    plain_console().print(load_table(FOUND))
    lines = [" ".join(line.split()) for line in capsys.readouterr().out.splitlines()]
    assert lines[:3] == ["BROKER DISK BYTESIN", "7 300% -> 120% 100% -> 100%", "9 100% -> 100% 300% -> 120%"]
    assert (len(lines), lines[-1]) == (22, "… 5 more: -o json")


def test_sentences() -> None:
    assert [*load_sentences(FOUND)] == [
        "Disk: fullest broker 300% -> 120% of its share, 1 -> 1 brokers more than 10% above theirs",
        "BytesIn: fullest broker 300% -> 120% of its share, 1 -> 1 brokers more than 10% above theirs",
        "copies 1.13 times the lower bound of 200 B for this",
        "broker 7 stays above its share of Disk: RackRule",
    ]


def test_the_document_has_all_brokers() -> None:
    document = load_document(FOUND)
    assert [len(resource["brokers"]) for resource in document["resources"]] == [25, 25]
    assert document["resources"][0]["brokers"][7] == {"id": 7, "share": 100, "before": 300, "after": 120}
    assert document["outside"] == [{"broker": 7, "resource": "Disk", "use": 120, "allowed": 110, "reason": "RackRule"}]
