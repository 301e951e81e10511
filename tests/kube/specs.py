"""Specs that the API server refuses or accepts, for tests with and without a server."""

from typing import Any

from tests.kube.spec_parts import DISK, SECRET, TOKENS, VOLUME, sasl

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
    ({"strategy": "LogDirs"}, "spec: Invalid value: the strategy LogDirs requires goals.logDirs"),
    (
        {"strategy": "LogDirs", "goals": {"logDirs": {}}, "brokers": {"decommission": [4]}},
        "spec: Invalid value: the strategy LogDirs",
    ),
    (
        {"strategy": "LogDirs", "goals": {"logDirs": {}}, "replicationFactor": 2},
        "spec: Invalid value: the strategy LogDirs",
    ),
    ({"goals": {"logDirs": {"band": "0%"}}}, "spec.goals.logDirs.band: "),
    ({"goals": {"logDirs": {"drain": [{"broker": 3}]}}}, "spec.goals.logDirs.drain[0].path: Required value"),
    ({"goals": {"logDirs": {"drain": [{"broker": 3, "path": "data/2"}]}}}, "spec.goals.logDirs.drain[0].path: "),
    ({"goals": {"logDirs": {"drain": [VOLUME, VOLUME]}}}, "spec.goals.logDirs.drain[1]: Duplicate value"),
    ({"execution": {"maxPerBroker": {"betweenLogDirs": 0}}}, "spec.execution.maxPerBroker.betweenLogDirs: "),
    ({"throttle": {"unlimited": True, "logDirRate": 1}}, "spec.throttle: Invalid value: set either unlimited"),
    ({"strategy": "ForcedMovesOnly", "goals": {"maxReplicaMoves": 5}}, "spec: Invalid value: goals.balance, "),
    ({"goals": {"minimumGain": 101}}, "spec.goals.minimumGain: "),
    (
        {"strategy": "Generate", "goals": {"load": {"resources": [{"name": "Disk"}]}}},
        "spec: Invalid value: goals.",
    ),
    ({"goals": {"load": {}}}, "spec.goals.load.resources: "),
    ({"goals": {"counts": False}}, "spec.goals: Invalid value: counts cannot be false without load"),
    ({"goals": {"counts": False, "minimumGain": 1, **DISK}}, "spec.goals: Invalid value: counts cannot"),
    ({"goals": {"counts": False, "balance": "Both", **DISK}}, "spec.goals: Invalid value: counts cannot"),
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
    (sasl("GSSAPI"), "spec.kafka.sasl.mechanism: "),
    (sasl("PLAIN", tls=False), "spec.kafka: Invalid value: sasl.mechanism PLAIN or OAUTHBEARER without tls"),
    (
        sasl("OAUTHBEARER", tls=False, tokenEndpoint=TOKENS),
        "spec.kafka: Invalid value: sasl.mechanism PLAIN or OAUTH",
    ),
    (sasl("OAUTHBEARER"), "spec.kafka.sasl: Invalid value: tokenEndpoint is required with the mechanism OAUTHBEARER"),
    (sasl("PLAIN", tokenEndpoint=TOKENS), "spec.kafka.sasl: Invalid value: tokenEndpoint is required with the"),
    (
        sasl("OAUTHBEARER", tokenEndpoint="http://a/token"),
        "spec.kafka.sasl: Invalid value: tokenEndpoint is not https",
    ),
    (
        sasl("OAUTHBEARER", tokenEndpoint="ftp://a/token"),
        "spec.kafka.sasl.tokenEndpoint: ",
    ),
    (
        sasl("OAUTHBEARER", tokenEndpoint="https://user:word@a/token"),
        "spec.kafka.sasl.tokenEndpoint: ",
    ),
    (sasl("OAUTHBEARER", tokenEndpoint=TOKENS, username="u"), "spec.kafka.sasl: Invalid value: username, secretRef."),
    (
        sasl("OAUTHBEARER", tokenEndpoint=TOKENS, secretRef=SECRET | {"usernameKey": "u"}),
        "spec.kafka.sasl: Invalid value: username, secretRef.",
    ),
    (
        sasl("OAUTHBEARER", tokenEndpoint=TOKENS, secretRef=SECRET | {"passwordKey": "p"}),
        "spec.kafka.sasl: Invalid value: username, secretRef.",
    ),
    (sasl("PLAIN", scope="kafka"), "spec.kafka.sasl: Invalid value: scope, caSecretRef, secretRef.clientIdKey"),
    (sasl("PLAIN", caSecretRef={"name": "ca"}), "spec.kafka.sasl: Invalid value: scope, caSecretRef, secretRef."),
    (sasl("PLAIN", secretRef=SECRET | {"clientIdKey": "i"}), "spec.kafka.sasl: Invalid value: scope, caSecretRef"),
    (sasl("PLAIN", secretRef=SECRET | {"clientSecretKey": "s"}), "spec.kafka.sasl: Invalid value: scope, caSecret"),
    (
        sasl("SCRAM-SHA-512", username="u", secretRef=SECRET | {"usernameKey": "u"}),
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
    {"strategy": "MinimalMovement", "goals": {"counts": False, "maxReplicaMoves": 5, **DISK}},
    {"strategy": "Generate", "goals": {"rackAwareness": "Disabled"}},
    {"strategy": "PreferredLeaders", "goals": {"followerOrder": False}},
    {"strategy": "LogDirs", "goals": {"logDirs": {"band": "5%", "drain": [VOLUME]}}, "throttle": {"logDirRate": 1}},
]

CREDENTIALS: list[dict[str, Any]] = [
    sasl("PLAIN"),
    sasl("PLAIN", tls=False, allowPlaintextCredentials=True),
    sasl("PLAIN", secretRef=SECRET | {"usernameKey": "u", "passwordKey": "p"}),
    sasl("SCRAM-SHA-512", tls=False, username="u"),
    sasl("OAUTHBEARER", tokenEndpoint=TOKENS, scope="kafka", caSecretRef={"name": "ca"}),
    sasl("OAUTHBEARER", tokenEndpoint=TOKENS, secretRef=SECRET | {"clientIdKey": "i", "clientSecretKey": "s"}),
    sasl("OAUTHBEARER", tls=False, tokenEndpoint="http://a:8080/token?x=1", allowPlaintextCredentials=True),
]
"""Connections that are allowed."""

NULLS: dict[str, Any] = {"throttle": None, "brokers": {"include": None, "decommission": [4]}}
"""A null field counts as absent."""
