"""The file of `run`: one KafkaRebalance, and what belongs to it. Parses bytes; opens nothing.

Beside it there may be a KafkaReassignmentThrottle, a KafkaConnection, and the Secrets and ConfigMaps that they name.
"""

import base64
import binascii
from collections.abc import Mapping
from typing import Any

from kafka_rebalance.api.v1alpha1 import API_VERSION, GROUP, KINDS, REBALANCES
from kafka_rebalance.api.validation import validate, without_nulls
from kafka_rebalance.app.local_run import LocalManifests
from kafka_rebalance.cli.files.kubernetes_yaml import load_all
from kafka_rebalance.cli.files.manifest_lint import items_of, lint
from kafka_rebalance.cli.files.rebalance_file import FileMetadata
from kafka_rebalance.errors import Refused
from kafka_rebalance.kube.directory_objects import GivenObjects

_DEFAULT_NAMESPACE = "default"
_LONGEST_NAME = 150
"""It becomes a part of the name of a file."""
_PLURALS = {kind: plural for plural, kind in KINDS.items()}
_OF_THE_API_SERVER = ("kubectl.kubernetes.io", GROUP)
"""Prefixes of annotations that say something about one object on an API server."""

Object = dict[str, Any]


def read_manifests(data: bytes) -> LocalManifests:
    """The content. ValueError says what is wrong, with the line, the resource or the field."""
    for linted in lint(data):
        if linted.errors:
            raise ValueError(f"{linted.what}: {linted.errors[0]}")
    resources: list[tuple[str, Object]] = []
    secrets: dict[tuple[str, str], Mapping[str, bytes]] = {}
    config_maps: dict[tuple[str, str], Mapping[str, str]] = {}
    for document in (item for found in load_all(data) for item in items_of(found)):
        if not isinstance(document, dict):
            raise ValueError(f"{document} has no use here")
        body = without_nulls(document)
        version, kind = body.get("apiVersion"), body.get("kind")
        metadata = _metadata(body)
        where = metadata["namespace"], metadata["name"]
        if version == API_VERSION and kind in _PLURALS:
            resources.append((_PLURALS[kind], {"metadata": metadata, "spec": body["spec"]}))
        elif (version, kind) == ("v1", "Secret"):
            secrets[where] = _secret(body)
        elif (version, kind) == ("v1", "ConfigMap"):
            config_maps[where] = {key: str(value) for key, value in (body.get("data") or {}).items()}
        else:
            raise ValueError(f"{kind or 'an object without a kind'} of {version or 'no apiVersion'} has no use here")
    rebalances = [body for plural, body in resources if plural == REBALANCES]
    if len(rebalances) != 1:
        raise ValueError(f"expected one KafkaRebalance, found {len(rebalances)}")
    others = [(plural, body) for plural, body in resources if plural != REBALANCES]
    return LocalManifests(rebalances[0], others, GivenObjects(secrets, config_maps))


def with_bootstrap_servers(manifests: LocalManifests, servers: str) -> LocalManifests:
    """All resources lead to these brokers, instead of what the file says."""
    kafka = {"bootstrapServers": servers}

    def redirected(body: Mapping[str, Any]) -> Object:
        return {**body, "spec": {**body["spec"], "kafka": kafka}}

    others = [(plural, redirected(body)) for plural, body in manifests.others if "kafka" in body["spec"]]
    return LocalManifests(redirected(manifests.rebalance), others, manifests.given)


def _metadata(body: Mapping[str, Any]) -> Object:
    try:
        found = validate(FileMetadata, body.get("metadata") or {}, "metadata")
    except Refused as invalid:
        raise ValueError(invalid.message) from invalid
    what = f"{body.get('kind', 'an object')} {found.name or ''}".rstrip()
    if found.name is None:
        raise ValueError(f"{what}: metadata.name: is required")
    if len(found.name) > _LONGEST_NAME:
        raise ValueError(f"{what}: metadata.name: must have at most {_LONGEST_NAME} characters here")
    annotations = {
        key: value for key, value in found.annotations.items() if key.partition("/")[0] not in _OF_THE_API_SERVER
    }
    metadata: Object = {"name": found.name, "namespace": found.namespace or _DEFAULT_NAMESPACE}
    return metadata | {"labels": found.labels, "annotations": annotations}


def _secret(body: Mapping[str, Any]) -> dict[str, bytes]:
    """No message has any of the content."""
    try:
        data = {key: base64.b64decode(value, validate=True) for key, value in (body.get("data") or {}).items()}
        return data | {key: value.encode() for key, value in (body.get("stringData") or {}).items()}
    except (AttributeError, TypeError, binascii.Error):
        name = body["metadata"]["name"]
        raise ValueError(f"Secret {name}: data must be base64, and stringData must be text") from None
