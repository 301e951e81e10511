"""Rules of roles as sets of group, resource and verb, to compare them."""

from typing import Any

from kafka_rebalance.kube.rights import Rule

Triples = set[tuple[str, str, str]]


def triples(rules: list[dict[str, Any]]) -> Triples:
    """Group, resource and verb of every rule of a role; our rules never use resourceNames."""
    assert not [rule for rule in rules if set(rule) - {"apiGroups", "resources", "verbs"}]
    return {(g, r, v) for rule in rules for g in rule["apiGroups"] for r in rule["resources"] for v in rule["verbs"]}


def of_rules(*rules: Rule) -> Triples:
    return {(rule.group, resource, verb) for rule in rules for resource in rule.resources for verb in rule.verbs}
