"""The resources in docs/authentication.md are valid, and show every field of the connection that has no default."""

import re
from pathlib import Path

import yaml

from kafka_rebalance.api.v1alpha1 import parse_rebalance

TEXT = (Path(__file__).parents[3] / "docs" / "authentication.md").read_text(encoding="utf-8")
EXAMPLES = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)]


def test_the_examples_are_valid() -> None:
    metadata = {"uid": "u-1", "generation": 1, "creationTimestamp": "2026-01-01T00:00:00Z"}
    parsed = [parse_rebalance({**body, "metadata": {**metadata, **body["metadata"]}}) for body in EXAMPLES]
    mechanisms = [found.spec.kafka.sasl.mechanism.value for found in parsed if found.spec.kafka.sasl]
    assert (len(parsed), mechanisms) == (6, ["SCRAM-SHA-512", "OAUTHBEARER", "SCRAM-SHA-512", "PLAIN"])


def test_the_keys_are_explained() -> None:
    named = ("usernameKey", "passwordKey", "clientIdKey", "clientSecretKey", "certificateKey", "privateKeyKey")
    assert [key for key in named if key not in TEXT] == []
