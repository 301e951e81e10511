"""Specs of connections with one mistake each, and what both validations say of it."""

from typing import Any

from tests.kube.spec_parts import ADDRESSES, OBJECT_NAME, SECRET, SERVER_RATE, TOKENS, BadInput, said_by_both

_LABEL_VALUE = "must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
_OF_OBJECTS = "must be an object with"
_CLEAR_TEXT = (
    "sasl.mechanism PLAIN or OAUTHBEARER without tls sends the password or the token in clear text: add tls, or set"
)

_INTERVAL = "must be a duration of 10s to 1h in one unit, like 30s, 1m or 15m"

_SCRAM = {"mechanism": "SCRAM-SHA-512", "secretRef": SECRET}
_OAUTH = {"mechanism": "OAUTHBEARER", "secretRef": SECRET, "tokenEndpoint": TOKENS}


def _wrong_type(spec: dict[str, Any], field: str, model: str, server: str) -> BadInput:
    return BadInput(spec, f"{field}: {model}", f"{field} in body must be of type {server}")


def _allowed(**allowed: Any) -> dict[str, Any]:
    return {"allowedNamespaces": allowed}


BAD_CONNECTIONS: list[BadInput] = [
    BadInput({"bootstrapServers": None}, "spec.bootstrapServers: is required", "spec.bootstrapServers: Required value"),
    BadInput({"bootstrapServers": ""}, "spec.bootstrapServers: must not be empty", "should be at least 1 chars long"),
    _wrong_type({"bootstrapServers": 9092}, "spec.bootstrapServers", "must be text: put it in quotes, found", "string"),
    _wrong_type({"bootstrapServers": ["a:1"]}, "spec.bootstrapServers", "must be text", "string"),
    said_by_both({"bootstrapServers": "a:1, b:2"}, "spec.bootstrapServers", ADDRESSES),
    said_by_both({"bootstrapServers": "SASL_SSL://a:1"}, "spec.bootstrapServers", ADDRESSES),
    BadInput(
        {"bootstrapServer": "a:1"},
        "spec.bootstrapServer: unknown field; did you mean bootstrapServers?",
        'unknown field "spec.bootstrapServer"',
    ),
    _wrong_type({"tls": True}, "spec.tls", f"{_OF_OBJECTS} caSecretRef, clientSecretRef", "object"),
    _wrong_type({"tls": {"caSecretRef": "ca"}}, "spec.tls.caSecretRef", f"{_OF_OBJECTS} name, key", "object"),
    BadInput(
        {"tls": {"caSecretRef": {}}},
        "spec.tls.caSecretRef.name: is required",
        "spec.tls.caSecretRef.name: Required value",
    ),
    said_by_both({"tls": {"caSecretRef": {"name": "CA"}}}, "spec.tls.caSecretRef.name", OBJECT_NAME),
    said_by_both(
        {"tls": {"caSecretRef": {"name": "a", "key": "a/b"}}}, "spec.tls.caSecretRef.key", "must be a key: letters"
    ),
    BadInput(
        {"tls": {"clientSecretRef": {"name": "a", "certificateKey": ""}}},
        "spec.tls.clientSecretRef.certificateKey: must not be empty",
        "should be at least 1 chars long",
    ),
    _wrong_type(
        {"tls": {"clientSecretRef": {"name": "a", "privateKeyKey": 5}}},
        "spec.tls.clientSecretRef.privateKeyKey",
        "must be text: put it in quotes",
        "string",
    ),
    _wrong_type({"sasl": "PLAIN"}, "spec.sasl", f"{_OF_OBJECTS} mechanism, secretRef", "object"),
    BadInput(
        {"sasl": {**_SCRAM, "mechanism": "GSSAPI"}},
        "spec.sasl.mechanism: must be 'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512' or 'OAUTHBEARER', found 'GSSAPI'",
        'supported values: "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"',
    ),
    BadInput(
        {"sasl": {"mechanism": "SCRAM-SHA-512"}},
        "spec.sasl.secretRef: is required",
        "spec.sasl.secretRef: Required value",
    ),
    BadInput(
        {"sasl": {**_SCRAM, "username": ""}},
        "spec.sasl.username: must not be empty",
        "should be at least 1 chars long",
    ),
    BadInput(
        {"sasl": {**_SCRAM, "password": "secret"}},
        "spec.sasl.password: unknown field; known are mechanism, secretRef",
        'unknown field "spec.sasl.password"',
    ),
    said_by_both(
        {"sasl": {**_SCRAM, "secretRef": {"name": "u", "usernameKey": "a b"}}},
        "spec.sasl.secretRef.usernameKey",
        "must be a key: letters, digits",
    ),
    said_by_both(
        {"sasl": {**_SCRAM, "username": "u", "secretRef": {"name": "u", "usernameKey": "k"}}},
        "spec.sasl",
        "username and secretRef.usernameKey exclude each other",
    ),
    said_by_both(
        {"sasl": {**_SCRAM, "tokenEndpoint": TOKENS}},
        "spec.sasl",
        "tokenEndpoint is required with the mechanism OAUTHBEARER and not allowed with others",
    ),
    said_by_both({"sasl": {**_SCRAM, "scope": "x"}}, "spec.sasl", "scope, caSecretRef, secretRef.clientIdKey and"),
    said_by_both(
        {"tls": {}, "sasl": {**_OAUTH, "username": "u"}},
        "spec.sasl",
        "username, secretRef.usernameKey and secretRef.passwordKey are not allowed with the mechanism OAUTHBEARER",
    ),
    said_by_both(
        {"tls": {}, "sasl": {**_OAUTH, "tokenEndpoint": "login"}},
        "spec.sasl.tokenEndpoint",
        "must be a URL like https://login.example.org/token",
    ),
    said_by_both(
        {"tls": {}, "sasl": {**_OAUTH, "tokenEndpoint": "http://a/t"}},
        "spec.sasl",
        "tokenEndpoint is not https: the client secret would be sent in clear text. Use https, or set",
    ),
    BadInput(
        {"tls": {}, "sasl": {**_OAUTH, "scope": ""}},
        "spec.sasl.scope: must not be empty",
        "should be at least 1 chars long",
    ),
    _wrong_type(
        {"tls": {}, "sasl": {**_OAUTH, "caSecretRef": "ca"}},
        "spec.sasl.caSecretRef",
        f"{_OF_OBJECTS} name, key",
        "object",
    ),
    _wrong_type(
        {"tls": {}, "sasl": {**_OAUTH, "allowPlaintextCredentials": "yes"}},
        "spec.sasl.allowPlaintextCredentials",
        "must be true or false, found 'yes'",
        "boolean",
    ),
    said_by_both({"sasl": _OAUTH}, "spec", _CLEAR_TEXT),
    said_by_both({"sasl": {**_SCRAM, "mechanism": "PLAIN"}}, "spec", _CLEAR_TEXT),
    said_by_both(_allowed(), "spec.allowedNamespaces", "requires exactly one of from, names and selector"),
    said_by_both(
        _allowed(names=["a"], **{"from": "All"}),
        "spec.allowedNamespaces",
        "requires exactly one of from, names and selector",
    ),
    _wrong_type(
        {"allowedNamespaces": "All"}, "spec.allowedNamespaces", f"{_OF_OBJECTS} from, names, selector", "object"
    ),
    BadInput(
        _allowed(**{"from": "all"}),
        "spec.allowedNamespaces.from: must be 'Same' or 'All', found 'all'",
        'supported values: "Same", "All"',
    ),
    BadInput(
        _allowed(namespaces=["a"]),
        "spec.allowedNamespaces.namespaces: unknown field; did you mean names?",
        'unknown field "spec.allowedNamespaces.namespaces"',
    ),
    _wrong_type(_allowed(names="a"), "spec.allowedNamespaces.names", "must be a list, found 'a'", "array"),
    said_by_both(_allowed(names=["A"]), "spec.allowedNamespaces.names[0]", OBJECT_NAME),
    _wrong_type(_allowed(names=[5]), "spec.allowedNamespaces.names[0]", "must be text: put it in quotes", "string"),
    _wrong_type(_allowed(selector="team=x"), "spec.allowedNamespaces.selector", f"{_OF_OBJECTS} matchLabels", "object"),
    BadInput(
        _allowed(selector={}),
        "spec.allowedNamespaces.selector.matchLabels: is required",
        "spec.allowedNamespaces.selector.matchLabels: Required value",
    ),
    BadInput(
        _allowed(selector={"matchLabels": {}}),
        "spec.allowedNamespaces.selector.matchLabels: must not be empty",
        "should have at least 1 properties",
    ),
    BadInput(
        _allowed(selector={"matchLabels": {"a": "b"}, "matchExpressions": []}),
        "spec.allowedNamespaces.selector.matchExpressions: unknown field; known are matchLabels",
        'unknown field "spec.allowedNamespaces.selector.matchExpressions"',
    ),
    _wrong_type(
        _allowed(selector={"matchLabels": {"team": 5}}),
        "spec.allowedNamespaces.selector.matchLabels.team",
        "must be text: put it in quotes, found 5",
        "string",
    ),
    said_by_both(
        _allowed(selector={"matchLabels": {"team": "a b"}}),
        "spec.allowedNamespaces.selector.matchLabels.team",
        _LABEL_VALUE,
    ),
    BadInput(
        _allowed(selector={"matchLabels": {"team": "x" * 64}}),
        "spec.allowedNamespaces.selector.matchLabels.team: must have at most 63 characters",
        "may not be more than 63",
    ),
    said_by_both(
        _allowed(selector={"matchLabels": {"my team": "a"}}),
        "spec.allowedNamespaces.selector.matchLabels",
        "must have names of labels, like team or example.org/team",
    ),
    said_by_both(
        {"capacity": {"brokers": [{"ids": [7, 8], "disk": "4Ti"}, {"ids": [8], "disk": "4Ti"}]}},
        "spec.capacity",
        "brokers names a broker twice; each id may be in one entry only",
    ),
    said_by_both(
        {"capacity": {"brokers": [{"ids": [7]}]}},
        "spec.capacity.brokers[0]",
        "set at least one of disk, networkIn and networkOut",
    ),
    BadInput(
        {"capacity": {"brokers": [{"ids": [], "disk": "4Ti"}]}},
        "spec.capacity.brokers[0].ids: must not be empty",
        "spec.capacity.brokers[0].ids in body should have at least 1 items",
    ),
    BadInput({"capacity": {"brokers": [{"disk": "4Ti"}]}}, "spec.capacity.brokers[0].ids: is required", "Required"),
    BadInput(
        {"capacity": {"default": {"disk": 0}}},
        "spec.capacity.default.disk: must be at least 1 byte, found 0",
        "must be a quantity of 1 to 9223372036854775807 bytes, like 5Ti or 1048576",
    ),
    BadInput(
        {"capacity": {"default": {"networkIn": "0.000Mi"}}},
        "spec.capacity.default.networkIn: must be a quantity of 1 to 1Pi bytes per second",
        SERVER_RATE,
    ),
    BadInput(
        {"capacity": {"default": {"network": "1Gi"}}},
        "spec.capacity.default.network: unknown field; did you mean networkIn?",
        'unknown field "spec.capacity.default.network"',
    ),
    _wrong_type({"sampling": True}, "spec.sampling", f"{_OF_OBJECTS} interval, consumerGroups", "object"),
    _wrong_type({"sampling": {"consumerGroups": "no"}}, "spec.sampling.consumerGroups", "must be", "boolean"),
    BadInput(
        {"sampling": {"location": "s3://bucket/lake"}},
        "spec.sampling.location: unknown field; known are interval, consumerGroups",
        'unknown field "spec.sampling.location"',
    ),
    *(
        said_by_both({"sampling": {"interval": interval}}, "spec.sampling.interval", _INTERVAL)
        for interval in ("9s", "1000s", "61m", "2h", "1m5s", "0m", "1d")
    ),
]
