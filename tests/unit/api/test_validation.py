"""The models refuse what the CRD schema refuses; `tests/kube/test_crds.py` checks the same cases on an API server."""

import re
from typing import Any

import pytest
from tests.kube.bad_connections import BAD_CONNECTIONS
from tests.kube.bad_rebalances import BAD_REBALANCES, BAD_THROTTLES
from tests.kube.spec_parts import BadInput
from tests.kube.specs import CREDENTIALS, EVERYTHING, MOST_BYTES, NULLS, REFUSED, STRATEGIES

from kafka_rebalance.api.v1alpha1 import parse_connection, parse_spec, parse_throttle
from kafka_rebalance.api.validation import without_nulls
from kafka_rebalance.errors import Refused
from kafka_rebalance.units import parse_quantity

KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}


@pytest.mark.parametrize(("spec", "said"), REFUSED)
def test_refuses_what_the_api_server_refuses(spec: dict[str, Any], said: str) -> None:
    """The message names the same field and says the same; for duplicates in a list, it names the list."""
    named, rule = re.search(r"spec(\.\w+)*", said), re.search(r"Invalid value: ([a-zA-Z].*)", said)
    with pytest.raises(Refused) as refused:
        parse_spec(without_nulls({**KAFKA, **spec}))
    assert refused.value.reason == "InvalidSpec"
    assert refused.value.message.startswith(named[0] if named else "spec.")
    assert not rule or rule[1] in refused.value.message


@pytest.mark.parametrize("bad", BAD_REBALANCES)
def test_says_what_to_write_in_a_rebalance(bad: BadInput) -> None:
    """The message names the field and what may be written there; no regular expressions and no names of classes."""
    with pytest.raises(Refused) as refused:
        parse_spec({**KAFKA, **bad.spec})
    assert refused.value.message.startswith(bad.model)


@pytest.mark.parametrize("bad", BAD_THROTTLES)
def test_says_what_to_write_in_a_throttle(bad: BadInput) -> None:
    metadata = {"name": "a", "namespace": "n", "uid": "u"}
    with pytest.raises(Refused) as refused:
        parse_throttle({"metadata": metadata, "spec": {**KAFKA, **bad.spec}})
    assert refused.value.message.startswith(bad.model)


@pytest.mark.parametrize("bad", BAD_CONNECTIONS)
def test_says_what_to_write_in_a_connection(bad: BadInput) -> None:
    metadata = {"name": "a", "namespace": "n", "uid": "u"}
    with pytest.raises(Refused) as refused:
        parse_connection({"metadata": metadata, "spec": without_nulls({"bootstrapServers": "kafka:9092", **bad.spec})})
    assert refused.value.message.startswith(bad.model)


@pytest.mark.parametrize("spec", [{}, EVERYTHING, NULLS, *STRATEGIES, *CREDENTIALS])
def test_accepts_what_the_api_server_accepts(spec: dict[str, Any]) -> None:
    whole = {**KAFKA, **spec}
    assert parse_spec(without_nulls(whole)).kafka.bootstrap_servers == whole["kafka"]["bootstrapServers"]


@pytest.mark.parametrize("goals", MOST_BYTES)
def test_the_largest_number_of_bytes(goals: dict[str, Any]) -> None:
    (count,) = goals.values()
    assert parse_spec({**KAFKA, "goals": goals}).goals.max_data_to_move == parse_quantity(count)


@pytest.mark.parametrize("count", [2**63, "8388608Ti", "9223373T"])
def test_more_than_64_bits_is_refused(count: int | str) -> None:
    """CEL would clamp a binary quantity to the largest integer instead."""
    with pytest.raises(Refused, match=r"^spec\.rollback\.maxData: must be at most 9223372036854775807 bytes"):
        parse_spec({**KAFKA, "rollback": {"maxData": count}})


def test_a_value_that_is_not_json_is_refused() -> None:
    with pytest.raises(ValueError, match="JSON"):
        parse_spec({**KAFKA, "priority": float("nan")})


@pytest.mark.parametrize("levels", [250, 100_000])
def test_what_is_nested_too_deeply_is_refused(levels: int) -> None:
    """Beyond 200 levels pydantic's parser refuses, and far beyond Python's recursion limit json.dumps does."""
    priority: list[Any] = []
    for _ in range(levels):
        priority = [priority]
    with pytest.raises(Refused, match=r"^spec: is nested too deeply"):
        parse_spec({**KAFKA, "priority": priority})
