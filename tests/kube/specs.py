"""Specs that the API server refuses or accepts, for tests with and without a server."""

from typing import Any, NamedTuple

_SECRET = {"name": "user"}


def _sasl(mechanism: str, *, tls: bool = True, **sasl: Any) -> dict[str, Any]:
    """A spec with this SASL configuration."""
    kafka = {"bootstrapServers": "a:1", "sasl": {"mechanism": mechanism, "secretRef": _SECRET, **sasl}}
    return {"kafka": {**kafka, "tls": {}} if tls else kafka}


_TOKENS = "https://login.example.org/token"

_DISK: dict[str, Any] = {"load": {"resources": [{"name": "Disk"}]}}

REFUSED: list[tuple[dict[str, Any], str]] = [
    # spec, error message of the API server
    ({"bogus": 1}, 'unknown field "spec.bogus"'),
    ({"topics": {"include": ["a", "["]}}, "spec.topics.include[1]: "),
    ({"topics": {"exclude": ["(?=a)"]}}, "is not a valid RE2 regular expression"),
    ({"execution": {"parallelReplicaCount": 0}}, "spec.execution.parallelReplicaCount: Invalid value: 0"),
    ({"execution": {"parallelPartitionCount": 0}}, "spec.execution.parallelPartitionCount: "),
    ({"execution": {"parallelLeaderMovements": 0}}, "spec.execution.parallelLeaderMovements: "),
    ({"execution": {"stallTimeout": "0s"}}, "must be a duration of at least 1s"),
    ({"execution": {"stallTimeout": "1w"}}, "spec.execution.stallTimeout: "),
    ({"throttle": {"leaderRate": -1}}, "spec.throttle.leaderRate: Invalid value: -1: must be a quantity"),
    ({"throttle": {"followerRate": 0}}, "spec.throttle.followerRate: "),
    ({"throttle": {"followerRate": "50MB"}}, "spec.throttle.followerRate: "),
    ({"throttle": {"followerRate": "2048Ti"}}, "spec.throttle.followerRate: "),
    ({"throttle": {}}, "spec.throttle: Invalid value: set either unlimited or at least one of"),
    ({"throttle": {"unlimited": True, "leaderRate": 1}}, "spec.throttle: Invalid value: set either unlimited"),
    ({"throttle": {"unlimited": False}}, "spec.throttle.unlimited: "),
    ({"brokers": {"include": [1, 2], "decommission": [2]}}, "spec.brokers: Invalid value: a broker cannot be"),
    ({"brokers": {"decommission": [2, 2]}}, "spec.brokers.decommission[1]: Duplicate value: 2"),
    ({"strategy": "Better"}, 'spec.strategy: Unsupported value: "Better"'),
    ({"strategy": "Assignment"}, "spec: Invalid value: assignment is required with the strategy Assignment"),
    ({"assignment": {"configMapRef": {"name": "a"}}}, "spec: Invalid value: assignment is required with the"),
    ({"strategy": "PreferredLeaders", "replicationFactor": 3}, "spec: Invalid value: replicationFactor is not"),
    ({"strategy": "PreferredLeaders", "goals": {"leaders": False}}, "spec: Invalid value: goals.leaders cannot"),
    ({"strategy": "Generate", "goals": {"balance": "Both"}}, "spec: Invalid value: goals.balance, load, "),
    ({"strategy": "ForcedMovesOnly", "goals": {"maxReplicaMoves": 5}}, "spec: Invalid value: goals.balance, "),
    ({"goals": {"minimumGain": 101}}, "spec.goals.minimumGain: "),
    (
        {"strategy": "Generate", "goals": {"load": {"resources": [{"name": "Disk"}]}}},
        "spec: Invalid value: goals.",
    ),
    ({"goals": {"load": {}}}, "spec.goals.load.resources: "),
    ({"goals": {"counts": False}}, "spec.goals: Invalid value: counts cannot be false without load"),
    ({"goals": {"counts": False, "minimumGain": 1, **_DISK}}, "spec.goals: Invalid value: counts cannot"),
    ({"goals": {"counts": False, "balance": "Both", **_DISK}}, "spec.goals: Invalid value: counts cannot"),
    ({"goals": {"load": {"resources": []}}}, "spec.goals.load.resources: "),
    ({"goals": {"load": {"resources": [{"name": "Disk"}] * 2}}}, "spec.goals.load.resources[1]: Duplicate value"),
    ({"goals": {"load": {"resources": [{"band": "5%"}]}}}, "spec.goals.load.resources[0].name: Required value"),
    ({"goals": {"load": {"resources": [{"name": "Disk", "band": 10}]}}}, "spec.goals.load.resources[0].band: "),
    ({"goals": {"maxDataToMove": "0"}}, "spec.goals.maxDataToMove: "),
    ({"goals": {"maxDataToMove": "8388608Ti"}}, "spec.goals.maxDataToMove: "),
    ({"goals": {"maxDataToMove": "9223373T"}}, "spec.goals.maxDataToMove: "),
    ({"goals": {"maxDataToMove": 2**63}}, "spec.goals.maxDataToMove: "),
    ({"rollback": {"maxData": "999999999999999Ti"}}, "spec.rollback.maxData: "),
    ({"replicationFactor": 0}, "spec.replicationFactor: "),
    ({"topics": {"pinned": ["["]}}, "spec.topics.pinned[0]: Invalid value: "),
    ({"offlinePolicy": "Wait"}, 'spec.offlinePolicy: Unsupported value: "Wait"'),
    ({"kafka": {"bootstrapServers": "nowhere"}}, "spec.kafka.bootstrapServers: "),
    ({"kafka": {"bootstrapServers": "a:1", "sasl": {"mechanism": "PLAIN"}}}, "spec.kafka.sasl.secretRef: "),
    (_sasl("GSSAPI"), "spec.kafka.sasl.mechanism: "),
    (_sasl("PLAIN", tls=False), "spec.kafka: Invalid value: sasl.mechanism PLAIN or OAUTHBEARER without tls"),
    (
        _sasl("OAUTHBEARER", tls=False, tokenEndpoint=_TOKENS),
        "spec.kafka: Invalid value: sasl.mechanism PLAIN or OAUTH",
    ),
    (_sasl("OAUTHBEARER"), "spec.kafka.sasl: Invalid value: tokenEndpoint is required with the mechanism OAUTHBEARER"),
    (_sasl("PLAIN", tokenEndpoint=_TOKENS), "spec.kafka.sasl: Invalid value: tokenEndpoint is required with the"),
    (
        _sasl("OAUTHBEARER", tokenEndpoint="http://a/token"),
        "spec.kafka.sasl: Invalid value: tokenEndpoint is not https",
    ),
    (
        _sasl("OAUTHBEARER", tokenEndpoint="ftp://a/token"),
        "spec.kafka.sasl.tokenEndpoint: ",
    ),
    (
        _sasl("OAUTHBEARER", tokenEndpoint="https://user:word@a/token"),
        "spec.kafka.sasl.tokenEndpoint: ",
    ),
    (_sasl("OAUTHBEARER", tokenEndpoint=_TOKENS, username="u"), "spec.kafka.sasl: Invalid value: username, secretRef."),
    (
        _sasl("OAUTHBEARER", tokenEndpoint=_TOKENS, secretRef=_SECRET | {"usernameKey": "u"}),
        "spec.kafka.sasl: Invalid value: username, secretRef.",
    ),
    (
        _sasl("OAUTHBEARER", tokenEndpoint=_TOKENS, secretRef=_SECRET | {"passwordKey": "p"}),
        "spec.kafka.sasl: Invalid value: username, secretRef.",
    ),
    (_sasl("PLAIN", scope="kafka"), "spec.kafka.sasl: Invalid value: scope, caSecretRef, secretRef.clientIdKey"),
    (_sasl("PLAIN", caSecretRef={"name": "ca"}), "spec.kafka.sasl: Invalid value: scope, caSecretRef, secretRef."),
    (_sasl("PLAIN", secretRef=_SECRET | {"clientIdKey": "i"}), "spec.kafka.sasl: Invalid value: scope, caSecretRef"),
    (_sasl("PLAIN", secretRef=_SECRET | {"clientSecretKey": "s"}), "spec.kafka.sasl: Invalid value: scope, caSecret"),
    (
        _sasl("SCRAM-SHA-512", username="u", secretRef=_SECRET | {"usernameKey": "u"}),
        "spec.kafka.sasl: Invalid value: username and secretRef.usernameKey exclude each other",
    ),
    ({"execution": {"stallTimeout": 900}}, "spec.execution.stallTimeout: "),
    ({"execution": {"stallTimeout": " 15m"}}, "spec.execution.stallTimeout: "),
    ({"execution": {"suspend": "true"}}, "spec.execution.suspend: "),
    ({"execution": {"parallelReplicaCount": "2"}}, "spec.execution.parallelReplicaCount: "),
    ({"brokers": {"include": ["1"]}}, "spec.brokers.include[0]: "),
    ({"throttle": {"leaderRate": "050Mi"}}, "spec.throttle.leaderRate: "),
    ({"throttle": {"leaderRate": " 50Mi"}}, "spec.throttle.leaderRate: "),
    ({"goals": {"leaders": 1}}, "spec.goals.leaders: "),
    ({"priority": "5"}, "spec.priority: "),
    ({"kafka": None}, "spec.kafka: Required value"),
]


class BadInput(NamedTuple):
    """A spec with one mistake. ``model``: what our own validation says of it; ``server``: what the API server says.

    For a wrong type, the API server names only the right type: its messages cannot be changed.
    """

    spec: dict[str, Any]
    model: str
    server: str


def _said_by_both(spec: dict[str, Any], field: str, message: str) -> BadInput:
    return BadInput(spec, f"{field}: {message}", message)


_KAFKA = {"bootstrapServers": "kafka:9092"}
_ADDRESSES = "must be host:port, or up to 20 separated by commas without spaces, like kafka-1:9092,kafka-2:9092"
_DURATION = "must be a duration of at least 1s, like 15m, 1h30m or 2d"
_CRON = "must be five cron fields separated by single spaces (minute hour day-of-month month day-of-week), or @hourly"
_OBJECT_NAME = "must be the name of an object: lower case letters, digits, '-' and '.'"
_SERVER_RATE = "must be a quantity of 1 to 1Pi bytes per second, like 50Mi or 1048576"
_MEGABYTES = "'50MB' is not a quantity like 50Mi or 1048576: write 50M (decimal) or 50Mi (binary)"

BAD_REBALANCES: list[BadInput] = [
    _said_by_both({"kafka": {"bootstrapServers": "kafka"}}, "spec.kafka.bootstrapServers", _ADDRESSES),
    _said_by_both({"kafka": {"bootstrapServers": "a:9092, b:9092"}}, "spec.kafka.bootstrapServers", _ADDRESSES),
    _said_by_both(
        {"kafka": {"bootstrapServers": ",".join(["kafka:9092"] * 21)}}, "spec.kafka.bootstrapServers", _ADDRESSES
    ),
    BadInput(
        {"kafka": {**_KAFKA, "sasl": {"mechanism": "SCRAM", "secretRef": {"name": "a"}}}},
        "spec.kafka.sasl.mechanism: must be 'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512' or 'OAUTHBEARER', found 'SCRAM'",
        'supported values: "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"',
    ),
    _said_by_both(
        {"kafka": {**_KAFKA, "tls": {"clientSecretRef": {"name": "My_Secret"}}}},
        "spec.kafka.tls.clientSecretRef.name",
        _OBJECT_NAME,
    ),
    _said_by_both(
        {"kafka": {**_KAFKA, "tls": {"caSecretRef": {"name": "a", "key": "ca/crt"}}}},
        "spec.kafka.tls.caSecretRef.key",
        "must be a key: letters, digits, '-', '_' and '.'",
    ),
    *(
        _said_by_both(
            _sasl("OAUTHBEARER", tokenEndpoint=url),
            "spec.kafka.sasl.tokenEndpoint",
            "must be a URL like https://login.example.org/token, without a user",
        )
        for url in ("ftp://a/token", "https://user:word@a/token")
    ),
    BadInput(
        {"brokers": {"include": ["0-3"]}},
        "spec.brokers.include[0]: must be an integer, found '0-3'",
        'spec.brokers.include[0] in body must be of type integer: "string"',
    ),
    BadInput(
        {"brokers": {"include": "1,2"}},
        "spec.brokers.include: must be a list, found '1,2'",
        'spec.brokers.include in body must be of type array: "string"',
    ),
    BadInput(
        {"brokers": {"decommission": [-1]}},
        "spec.brokers.decommission[0]: must be at least 0, found -1",
        "spec.brokers.decommission[0] in body should be greater than or equal to 0",
    ),
    BadInput(
        {"topics": ["orders"]},
        "spec.topics: must be an object with include, exclude, pinned",
        'spec.topics in body must be of type object: "array"',
    ),
    BadInput(
        {"topics": {"include": "orders"}},
        "spec.topics.include: must be a list, found 'orders'",
        'spec.topics.include in body must be of type array: "string"',
    ),
    _said_by_both({"topics": {"exclude": ["*"]}}, "spec.topics.exclude[0]", "is not a valid RE2 regular expression"),
    BadInput(
        {"topics": {"includes": ["orders"]}},
        "spec.topics.includes: unknown field; did you mean include?",
        'unknown field "spec.topics.includes"',
    ),
    BadInput(
        {"strategy": "minimal"},
        "spec.strategy: must be 'MinimalMovement', 'ForcedMovesOnly', 'Generate', 'Assignment' or 'PreferredLeaders'",
        'supported values: "MinimalMovement", "ForcedMovesOnly"',
    ),
    BadInput(
        {"assignment": {"configMapRef": "lists"}, "strategy": "Assignment"},
        "spec.assignment.configMapRef: must be an object with name, key, found 'lists'",
        'spec.assignment.configMapRef in body must be of type object: "string"',
    ),
    BadInput(
        {"goals": {"leaders": "yes"}},
        "spec.goals.leaders: must be true or false, found 'yes'",
        'spec.goals.leaders in body must be of type boolean: "string"',
    ),
    BadInput(
        {"goals": {"load": {"resources": [{"name": "Network"}]}}},
        "spec.goals.load.resources[0].name: must be 'Disk', 'BytesIn', 'BytesOut' or 'LeaderBytesIn', found 'Network'",
        'supported values: "Disk", "BytesIn", "BytesOut", "LeaderBytesIn"',
    ),
    *(
        _said_by_both(
            {"goals": {"load": {"resources": [{"name": "Disk", field: written}]}}},
            f"spec.goals.load.resources[0].{field}",
            "must be a percentage from 1% to 100%, like 10%",
        )
        for field, written in (("band", "0%"), ("band", "10"), ("capacityLimit", "101%"), ("capacityLimit", "0.8"))
    ),
    *(
        _said_by_both(
            {"goals": {"load": {"resources": [{"name": "Disk", field: written}]}}},
            "spec.goals.load.resources[0]",
            "statistic and minimumCoverage are not allowed for Disk: sizes have only their latest value",
        )
        for field, written in (("statistic", "P95"), ("minimumCoverage", "1h"))
    ),
    BadInput(
        {"execution": {"maxPerBroker": 2}},
        "spec.execution.maxPerBroker: must be an object with in, out, found 2",
        'spec.execution.maxPerBroker in body must be of type object: "integer"',
    ),
    BadInput(
        {"execution": {"maxUnhealthy": "10%"}},
        "spec.execution.maxUnhealthy: must be an integer, found '10%'",
        'spec.execution.maxUnhealthy in body must be of type integer: "string"',
    ),
    _said_by_both({"execution": {"stallTimeout": "1w"}}, "spec.execution.stallTimeout", _DURATION),
    _said_by_both({"execution": {"brokerSettleTime": "0s"}}, "spec.execution.brokerSettleTime", _DURATION),
    _said_by_both({"rollback": {"timeout": ""}}, "spec.rollback.timeout", _DURATION),
    _said_by_both({"rollback": {"timeout": "1.5h"}}, "spec.rollback.timeout", _DURATION),
    _said_by_both(
        {"execution": {"windows": [{"cron": "@nightly", "duration": "1h"}]}}, "spec.execution.windows[0].cron", _CRON
    ),
    _said_by_both(
        {"execution": {"windows": [{"cron": "0 0 3 * * *", "duration": "1h"}]}}, "spec.execution.windows[0].cron", _CRON
    ),
    _said_by_both(
        {"execution": {"windows": [{"cron": "@daily", "duration": "1h", "timeZone": "Europe Berlin"}]}},
        "spec.execution.windows[0].timeZone",
        "must be the IANA name of a time zone, like Europe/Berlin",
    ),
    BadInput(
        {"execution": {"windows": [{"cron": "@daily"}]}},
        "spec.execution.windows[0].duration: is required",
        "spec.execution.windows[0].duration: Required value",
    ),
    BadInput(
        {"execution": {"windows": {"cron": "@daily", "duration": "1h"}}},
        "spec.execution.windows: must be a list",
        'unknown field "spec.execution.windows.cron"',
    ),
    BadInput(
        {"throttle": "50Mi"},
        "spec.throttle: must be an object with leaderRate, followerRate, unlimited, found '50Mi'",
        'spec.throttle in body must be of type object: "string"',
    ),
    BadInput({"throttle": {"leaderRate": "50MB"}}, f"spec.throttle.leaderRate: {_MEGABYTES}", _SERVER_RATE),
    BadInput(
        {"throttle": {"leaderRate": "1.5"}}, "spec.throttle.leaderRate: '1.5' is not a quantity like 50Mi", _SERVER_RATE
    ),
    BadInput(
        {"throttle": {"followerRate": "0.000Mi"}},
        "spec.throttle.followerRate: must be a quantity of 1 to 1Pi bytes per second",
        _SERVER_RATE,
    ),
    BadInput(
        {"approval": "Manual"},
        "spec.approval: must be an object with policy, planHash, driftBudget, found 'Manual'",
        'spec.approval in body must be of type object: "string"',
    ),
    _said_by_both(
        {"approval": {"policy": "Manual", "planHash": "abc"}},
        "spec.approval.planHash",
        "must be a hash as in status.plan.hash: sha256: and 64 hexadecimal digits",
    ),
]

BAD_THROTTLES: list[BadInput] = [
    _said_by_both({"kafka": {"bootstrapServers": "kafka"}}, "spec.kafka.bootstrapServers", _ADDRESSES),
    BadInput({"leaderRate": "50MB"}, f"spec.leaderRate: {_MEGABYTES}", f"must be -1 (unset) or {_SERVER_RATE[8:]}"),
    BadInput(
        {"brokers": {"1": {"leaderRate": "1Mi"}}},
        "spec.brokers: must be a list",
        'unknown field "spec.brokers.1"',
    ),
    BadInput(
        {"brokers": [{"id": "1", "leaderRate": 1}]},
        "spec.brokers[0].id: must be an integer, found '1'",
        'spec.brokers[0].id in body must be of type integer: "string"',
    ),
    _said_by_both({"brokers": [{"id": 1}]}, "spec.brokers[0]", "set leaderRate, followerRate or both; -1 means unset"),
    BadInput(
        {"limits": 5},
        "spec.limits: must be an object with parallelPartitionCount, parallelLeaderMovements",
        'spec.limits in body must be of type object: "integer"',
    ),
    BadInput({"freeze": "on"}, "spec.freeze: must be true or false, found 'on'", "must be of type boolean"),
]

_LABEL_VALUE = "must be the value of a label: letters, digits, '-', '_' and '.', with a letter or digit at both ends"
_OF_OBJECTS = "must be an object with"
_CLEAR_TEXT = (
    "sasl.mechanism PLAIN or OAUTHBEARER without tls sends the password or the token in clear text: add tls, or set"
)
_SCRAM = {"mechanism": "SCRAM-SHA-512", "secretRef": _SECRET}
_OAUTH = {"mechanism": "OAUTHBEARER", "secretRef": _SECRET, "tokenEndpoint": _TOKENS}


def _wrong_type(spec: dict[str, Any], field: str, model: str, server: str) -> BadInput:
    return BadInput(spec, f"{field}: {model}", f"{field} in body must be of type {server}")


def _allowed(**allowed: Any) -> dict[str, Any]:
    return {"allowedNamespaces": allowed}


BAD_CONNECTIONS: list[BadInput] = [
    BadInput({"bootstrapServers": None}, "spec.bootstrapServers: is required", "spec.bootstrapServers: Required value"),
    BadInput({"bootstrapServers": ""}, "spec.bootstrapServers: must not be empty", "should be at least 1 chars long"),
    _wrong_type({"bootstrapServers": 9092}, "spec.bootstrapServers", "must be text: put it in quotes, found", "string"),
    _wrong_type({"bootstrapServers": ["a:1"]}, "spec.bootstrapServers", "must be text", "string"),
    _said_by_both({"bootstrapServers": "a:1, b:2"}, "spec.bootstrapServers", _ADDRESSES),
    _said_by_both({"bootstrapServers": "SASL_SSL://a:1"}, "spec.bootstrapServers", _ADDRESSES),
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
    _said_by_both({"tls": {"caSecretRef": {"name": "CA"}}}, "spec.tls.caSecretRef.name", _OBJECT_NAME),
    _said_by_both(
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
    _said_by_both(
        {"sasl": {**_SCRAM, "secretRef": {"name": "u", "usernameKey": "a b"}}},
        "spec.sasl.secretRef.usernameKey",
        "must be a key: letters, digits",
    ),
    _said_by_both(
        {"sasl": {**_SCRAM, "username": "u", "secretRef": {"name": "u", "usernameKey": "k"}}},
        "spec.sasl",
        "username and secretRef.usernameKey exclude each other",
    ),
    _said_by_both(
        {"sasl": {**_SCRAM, "tokenEndpoint": _TOKENS}},
        "spec.sasl",
        "tokenEndpoint is required with the mechanism OAUTHBEARER and not allowed with others",
    ),
    _said_by_both({"sasl": {**_SCRAM, "scope": "x"}}, "spec.sasl", "scope, caSecretRef, secretRef.clientIdKey and"),
    _said_by_both(
        {"tls": {}, "sasl": {**_OAUTH, "username": "u"}},
        "spec.sasl",
        "username, secretRef.usernameKey and secretRef.passwordKey are not allowed with the mechanism OAUTHBEARER",
    ),
    _said_by_both(
        {"tls": {}, "sasl": {**_OAUTH, "tokenEndpoint": "login"}},
        "spec.sasl.tokenEndpoint",
        "must be a URL like https://login.example.org/token",
    ),
    _said_by_both(
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
    _said_by_both({"sasl": _OAUTH}, "spec", _CLEAR_TEXT),
    _said_by_both({"sasl": {**_SCRAM, "mechanism": "PLAIN"}}, "spec", _CLEAR_TEXT),
    _said_by_both(_allowed(), "spec.allowedNamespaces", "requires exactly one of from, names and selector"),
    _said_by_both(
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
    _said_by_both(_allowed(names=["A"]), "spec.allowedNamespaces.names[0]", _OBJECT_NAME),
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
    _said_by_both(
        _allowed(selector={"matchLabels": {"team": "a b"}}),
        "spec.allowedNamespaces.selector.matchLabels.team",
        _LABEL_VALUE,
    ),
    BadInput(
        _allowed(selector={"matchLabels": {"team": "x" * 64}}),
        "spec.allowedNamespaces.selector.matchLabels.team: must have at most 63 characters",
        "may not be more than 63",
    ),
    _said_by_both(
        _allowed(selector={"matchLabels": {"my team": "a"}}),
        "spec.allowedNamespaces.selector.matchLabels",
        "must have names of labels, like team or example.org/team",
    ),
    _said_by_both(
        {"capacity": {"brokers": [{"ids": [7, 8], "disk": "4Ti"}, {"ids": [8], "disk": "4Ti"}]}},
        "spec.capacity",
        "brokers names a broker twice; each id may be in one entry only",
    ),
    _said_by_both(
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
        _SERVER_RATE,
    ),
    BadInput(
        {"capacity": {"default": {"network": "1Gi"}}},
        "spec.capacity.default.network: unknown field; did you mean networkIn?",
        'unknown field "spec.capacity.default.network"',
    ),
]

EVERYTHING: dict[str, Any] = {
    "kafka": {
        "bootstrapServers": "a.example.org:9092,[::1]:9093",
        "tls": {"caSecretRef": {"name": "ca"}, "clientSecretRef": {"name": "client", "certificateKey": "user.crt"}},
        "sasl": {"mechanism": "SCRAM-SHA-256", "secretRef": {"name": "user"}},
    },
    "topics": {"include": ["orders-.*"] * 100, "exclude": ["legacy-(a|b)"], "pinned": ["audit-.*"] * 100},
    "brokers": {"include": list(range(1000)), "decommission": list(range(1000, 1200))},
    "goals": {
        "rackAwareness": "Preferred",
        "leaders": False,
        "followerOrder": False,
        "balance": "PerTopic",
        "maxReplicaMoves": 500,
        "maxDataToMove": "2Ti",
        "minimumGain": 5,
        "load": {
            "resources": [
                {"name": "Disk", "band": "100%", "capacityLimit": "1%"},
                {"name": "LeaderBytesIn", "statistic": "Max"},
                {"name": "BytesOut", "statistic": "P99", "minimumCoverage": "1h30m"},
                {"name": "BytesIn"},
            ]
        },
    },
    "replicationFactor": 3,
    "offlinePolicy": "Refuse",
    "execution": {
        "suspend": True,
        "parallelReplicaCount": 3,
        "stallTimeout": "1h30m",
        "brokerSettleTime": "2d",
        "windows": [{"cron": "@daily", "duration": "2d"}, {"cron": "0 3 * * MON-FRI", "duration": "5h"}],
    },
    "throttle": {"leaderRate": "1.5Gi", "followerRate": 1048576},
    "deletionPolicy": "Revert",
}

MOST_BYTES: list[dict[str, Any]] = [
    {"maxDataToMove": 2**63 - 1},
    {"maxDataToMove": "8388607Ti"},
    {"maxDataToMove": "9223372T"},
]
"""Goals with almost as many bytes as an integer in a resource can have."""

STRATEGIES: list[dict[str, Any]] = [
    {"strategy": "Assignment", "assignment": {"configMapRef": {"name": "lists"}}},
    {"strategy": "ForcedMovesOnly", "replicationFactor": 2},
    {"strategy": "MinimalMovement", "goals": {"counts": False, "maxReplicaMoves": 5, **_DISK}},
    {"strategy": "Generate", "goals": {"rackAwareness": "Disabled"}},
    {"strategy": "PreferredLeaders", "goals": {"followerOrder": False}},
]

CREDENTIALS: list[dict[str, Any]] = [
    _sasl("PLAIN"),
    _sasl("PLAIN", tls=False, allowPlaintextCredentials=True),
    _sasl("PLAIN", secretRef=_SECRET | {"usernameKey": "u", "passwordKey": "p"}),
    _sasl("SCRAM-SHA-512", tls=False, username="u"),
    _sasl("OAUTHBEARER", tokenEndpoint=_TOKENS, scope="kafka", caSecretRef={"name": "ca"}),
    _sasl("OAUTHBEARER", tokenEndpoint=_TOKENS, secretRef=_SECRET | {"clientIdKey": "i", "clientSecretKey": "s"}),
    _sasl("OAUTHBEARER", tls=False, tokenEndpoint="http://a:8080/token?x=1", allowPlaintextCredentials=True),
]
"""Connections that are allowed."""

NULLS: dict[str, Any] = {"throttle": None, "brokers": {"include": None, "decommission": [4]}}
"""A null field counts as absent."""
