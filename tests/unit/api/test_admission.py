"""What commands refuse before the API server could: the same as it does, as `tests/kube/test_crds.py` sees it."""

import re
from typing import Any

import pytest
from tests.kube.metadata import METADATA, REFUSED_METADATA
from tests.kube.specs import EVERYTHING, MOST_BYTES, NULLS, REFUSED, STRATEGIES

from kafka_rebalance.api.admission import check_metadata, check_spec
from kafka_rebalance.errors import Refused
from kafka_rebalance.units import parse_quantity

KAFKA = {"kafka": {"bootstrapServers": "kafka:9092"}}


class TestSpec:
    @pytest.mark.parametrize(("spec", "said"), REFUSED)
    def test_what_the_api_server_refuses(self, spec: dict[str, Any], said: str) -> None:
        """The same field is named; of two that are alike the list."""
        named = re.search(r"spec(\.\w+)*", said)
        with pytest.raises(Refused) as refused:
            check_spec({**KAFKA, **spec})
        assert refused.value.reason == "InvalidSpec"
        assert refused.value.message.startswith(named[0] if named else "spec.")

    @pytest.mark.parametrize("spec", [{}, EVERYTHING, NULLS, *STRATEGIES])
    def test_what_it_takes(self, spec: dict[str, Any]) -> None:
        """And what it means, for it is read as the operator reads it."""
        assert check_spec({**KAFKA, **spec}).kafka.bootstrap_servers == {**KAFKA, **spec}["kafka"]["bootstrapServers"]

    @pytest.mark.parametrize("goals", MOST_BYTES)
    def test_the_most_bytes(self, goals: dict[str, Any]) -> None:
        """As many as were written."""
        (count,) = goals.values()
        assert check_spec({**KAFKA, "goals": goals}).goals.max_data_to_move == parse_quantity(count)

    @pytest.mark.parametrize("count", [2**63, "8388608Ti", "9223373T"])
    def test_more_than_64_bits(self, count: int | str) -> None:
        """Refused, however they are written: Kubernetes itself would take the largest number there is instead."""
        with pytest.raises(Refused, match=r"^spec\.rollback\.maxData: must be 9223372036854775807 bytes at most"):
            check_spec({**KAFKA, "rollback": {"maxData": count}})

    def test_the_message_says_what_would_be_taken(self) -> None:
        for spec, says in [
            ({"throttle": {"leaderRate": "050Mi"}}, "must be a quantity of 1 to 1Pi bytes per second, like 50Mi"),
            ({"execution": {"stallTimeout": 900}}, "expected a string, found 900"),
            ({"priority": "5"}, "expected an integer, found '5'"),
            ({"execution": {"suspend": "true"}}, "expected a boolean, found 'true'"),
        ]:
            with pytest.raises(Refused, match=says):
                check_spec({**KAFKA, **spec})


class TestMetadata:
    """Kubernetes' rules; which fields there are is known too."""

    @pytest.mark.parametrize(
        "metadata", [{}, {"namespace": "a" * 63}, {"name": "a", "namespace": "0-9"}, {"namespace": None}, *METADATA]
    )
    def test_taken(self, metadata: dict[str, Any]) -> None:
        check_metadata(metadata)

    @pytest.mark.parametrize(
        ("metadata", "field"),
        [
            ({"namespace": "a.b"}, "metadata.namespace"),
            ({"namespace": "a" * 64}, "metadata.namespace"),
            *REFUSED_METADATA,
        ],
    )
    def test_refused(self, metadata: dict[str, Any], field: str) -> None:
        """With the field."""
        with pytest.raises(Refused) as refused:
            check_metadata(metadata)
        assert refused.value.reason == "InvalidMetadata"
        assert refused.value.message.startswith(f"{field}: ")
