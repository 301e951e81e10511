"""The KafkaRebalance in a file of YAML documents, checked against the models. Parses bytes; opens nothing.

Only what the commands use is checked. The API server checks the rest when the resource is created.
"""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from kafka_rebalance.api.fields import ApiModel, Form, ObjectName
from kafka_rebalance.api.rebalance_spec import KafkaRebalanceSpec
from kafka_rebalance.api.v1alpha1 import API_VERSION, parse_spec
from kafka_rebalance.api.validation import validate, without_nulls
from kafka_rebalance.cli.files.kubernetes_yaml import load_all
from kafka_rebalance.errors import Refused
from kafka_rebalance.execution.windows import check

_KIND = "KafkaRebalance"


NamespaceName = Annotated[
    str,
    Field(max_length=63),
    Form(
        "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
        "must be the name of a namespace: lower case letters, digits and '-', with a letter or digit at both ends",
    ),
]


class FileMetadata(ApiModel):
    """The metadata that commands use; the rest is ignored."""

    model_config = ConfigDict(extra="ignore")

    name: ObjectName | None = None
    namespace: NamespaceName | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    annotations: dict[str, str] = Field(default_factory=dict)


class _RebalanceFile(ApiModel):
    api_version: Literal["kafkarebalance.dev/v1alpha1"]
    kind: Literal["KafkaRebalance"]
    metadata: FileMetadata = FileMetadata()
    spec: Annotated[dict[str, Any], Field(min_length=1)]
    status: Any = None


def read_rebalance(data: bytes) -> dict[str, Any]:
    """The one KafkaRebalance in the file, without nulls. Its spec may be incomplete: ``spec_of`` checks it.

    ValueError says what is wrong, with the line or the field.
    """
    documents = load_all(data)
    # Strimzi has a kind of this name too.
    ours = [found for found in documents if _name_of(found) == _KIND]
    if len(ours) != 1:
        raise ValueError(f"expected one {_KIND}, found {', '.join(map(_name_of, documents)) or 'nothing'}")
    try:
        found: dict[str, Any] = without_nulls(ours[0])
        validate(_RebalanceFile, found, "")
    except Refused as invalid:
        raise ValueError(invalid.message) from invalid
    except (TypeError, RecursionError) as odd:
        raise ValueError(f"not JSON: {odd}") from odd
    return found


def read_spec(data: bytes) -> KafkaRebalanceSpec:
    """The complete spec of the one KafkaRebalance in the file. ValueError names the field."""
    return spec_of(read_rebalance(data)["spec"])


def spec_of(spec: Any) -> KafkaRebalanceSpec:
    """The spec, if the operator could act on it. ValueError names the field."""
    try:
        read = parse_spec(spec)
    except Refused as invalid:
        raise ValueError(invalid.message) from invalid
    for at, window in enumerate(read.execution.windows):
        try:
            check(window.as_rule())
        except ValueError as wrong:
            raise ValueError(f"spec.execution.windows[{at}]: {wrong}") from wrong
    return read


def _name_of(document: Any) -> str:
    if not isinstance(document, dict):
        return "text"
    kind, version = document.get("kind"), document.get("apiVersion")
    if kind is None:
        return "an object without a kind"
    return f"{kind}" if version == API_VERSION else f"{kind} of {version or 'no apiVersion'}"
