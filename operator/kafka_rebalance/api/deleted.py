"""Reads a KafkaRebalance that is being deleted and whose spec cannot be read as a whole.

A later version wrote it, say, and the operator was put back to an earlier one. Its deletion must not wait for that.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from kafka_rebalance.api.v1alpha1 import KafkaRebalance, parse_metadata, parse_rebalance
from kafka_rebalance.errors import Refused


def parse_deleted_rebalance(body: Mapping[str, Any]) -> KafkaRebalance:
    """As much as can be read: a field that cannot be counts as absent, so that its default holds.

    Refused("InvalidSpec") where not even the cluster can be read.
    """
    parse_metadata(body)
    spec = copy.deepcopy(dict(body.get("spec", {})))
    while True:
        try:
            return parse_rebalance({**body, "spec": spec})
        except Refused as refused:
            found = refused.__cause__
            if not isinstance(found, ValidationError):
                raise
            # One at a time: what is wrong together may be so because of one field.
            loc = found.errors(include_url=False, include_context=False, include_input=False)[0]["loc"]
            if loc[:1] == ("kafka",) or spec.keys() <= {"kafka"}:
                raise
            _leave_out(spec, loc)


def _leave_out(spec: dict[str, Any], loc: tuple[int | str, ...]) -> None:
    """Take out the field at ``loc``, as far as that leads through objects; else all but the cluster."""
    within, path = spec, list(loc)
    while len(path) > 1 and isinstance(within.get(str(path[0])), dict) and path[1] in within[str(path[0])]:
        within = within[str(path.pop(0))]
    if not path or within.pop(str(path[0]), None) is None:
        for name in spec.keys() - {"kafka"}:
            del spec[name]
