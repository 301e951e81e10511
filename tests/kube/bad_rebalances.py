"""Specs of rebalances and throttles with one mistake each, and what both validations say of it."""

from tests.kube.spec_parts import ADDRESSES, DURATION, OBJECT_NAME, SERVER_RATE, BadInput, said_by_both, sasl

_KAFKA = {"bootstrapServers": "kafka:9092"}
_CRON = "must be five cron fields separated by single spaces (minute hour day-of-month month day-of-week), or @hourly"

_MEGABYTES = "'50MB' is not a quantity like 50Mi or 1048576: write 50M (decimal) or 50Mi (binary)"

BAD_REBALANCES: list[BadInput] = [
    said_by_both({"kafka": {"bootstrapServers": "kafka"}}, "spec.kafka.bootstrapServers", ADDRESSES),
    said_by_both({"kafka": {"bootstrapServers": "a:9092, b:9092"}}, "spec.kafka.bootstrapServers", ADDRESSES),
    said_by_both(
        {"kafka": {"bootstrapServers": ",".join(["kafka:9092"] * 21)}}, "spec.kafka.bootstrapServers", ADDRESSES
    ),
    BadInput(
        {"kafka": {**_KAFKA, "sasl": {"mechanism": "SCRAM", "secretRef": {"name": "a"}}}},
        "spec.kafka.sasl.mechanism: must be 'PLAIN', 'SCRAM-SHA-256', 'SCRAM-SHA-512' or 'OAUTHBEARER', found 'SCRAM'",
        'supported values: "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"',
    ),
    said_by_both(
        {"kafka": {**_KAFKA, "tls": {"clientSecretRef": {"name": "My_Secret"}}}},
        "spec.kafka.tls.clientSecretRef.name",
        OBJECT_NAME,
    ),
    said_by_both(
        {"kafka": {**_KAFKA, "tls": {"caSecretRef": {"name": "a", "key": "ca/crt"}}}},
        "spec.kafka.tls.caSecretRef.key",
        "must be a key: letters, digits, '-', '_' and '.'",
    ),
    *(
        said_by_both(
            sasl("OAUTHBEARER", tokenEndpoint=url),
            "spec.kafka.sasl.tokenEndpoint",
            "must be a URL like https://login.example.org/token, without a user",
        )
        for url in ("ftp://a/token", "https://user:word@a/token")
    ),
    BadInput(
        {"brokers": {"include": ["0-3"]}},
        "spec.brokers.include[0]: must be an integer: list each number of a range, found '0-3'",
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
    said_by_both({"topics": {"exclude": ["*"]}}, "spec.topics.exclude[0]", "is not a valid RE2 regular expression"),
    BadInput(
        {"topics": {"includes": ["orders"]}},
        "spec.topics.includes: unknown field; did you mean include?",
        'unknown field "spec.topics.includes"',
    ),
    BadInput(
        {"strategy": "minimal"},
        "spec.strategy: must be 'MinimalMovement', 'ForcedMovesOnly', 'Generate', 'Assignment', 'PreferredLeaders' or "
        "'LogDirs'",
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
        said_by_both(
            {"goals": {"load": {"resources": [{"name": "Disk", field: written}]}}},
            f"spec.goals.load.resources[0].{field}",
            "must be a percentage from 1% to 100%, like 10%",
        )
        for field, written in (("band", "0%"), ("band", "10"), ("capacityLimit", "101%"), ("capacityLimit", "0.8"))
    ),
    *(
        said_by_both(
            {"goals": {"load": {"resources": [{"name": "Disk", field: written}]}}},
            "spec.goals.load.resources[0]",
            "statistic and minimumCoverage are not allowed for Disk: sizes have only their latest value",
        )
        for field, written in (("statistic", "P95"), ("minimumCoverage", "1h"))
    ),
    BadInput(
        {"execution": {"maxPerBroker": 2}},
        "spec.execution.maxPerBroker: must be an object with in, out, betweenLogDirs, found 2",
        'spec.execution.maxPerBroker in body must be of type object: "integer"',
    ),
    BadInput(
        {"execution": {"maxUnhealthy": "10%"}},
        "spec.execution.maxUnhealthy: must be an integer, not a percentage, found '10%'",
        'spec.execution.maxUnhealthy in body must be of type integer: "string"',
    ),
    said_by_both({"execution": {"stallTimeout": "1w"}}, "spec.execution.stallTimeout", DURATION),
    said_by_both({"execution": {"brokerSettleTime": "0s"}}, "spec.execution.brokerSettleTime", DURATION),
    said_by_both({"rollback": {"timeout": ""}}, "spec.rollback.timeout", DURATION),
    said_by_both({"rollback": {"timeout": "1.5h"}}, "spec.rollback.timeout", DURATION),
    said_by_both(
        {"execution": {"windows": [{"cron": "@nightly", "duration": "1h"}]}}, "spec.execution.windows[0].cron", _CRON
    ),
    said_by_both(
        {"execution": {"windows": [{"cron": "0 0 3 * * *", "duration": "1h"}]}}, "spec.execution.windows[0].cron", _CRON
    ),
    said_by_both(
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
        "spec.throttle: must be an object with leaderRate, followerRate, logDirRate, unlimited, found '50Mi'",
        'spec.throttle in body must be of type object: "string"',
    ),
    BadInput({"throttle": {"leaderRate": "50MB"}}, f"spec.throttle.leaderRate: {_MEGABYTES}", SERVER_RATE),
    BadInput(
        {"throttle": {"leaderRate": "1.5"}}, "spec.throttle.leaderRate: '1.5' is not a quantity like 50Mi", SERVER_RATE
    ),
    BadInput(
        {"throttle": {"followerRate": "0.000Mi"}},
        "spec.throttle.followerRate: must be a quantity of 1 to 1Pi bytes per second",
        SERVER_RATE,
    ),
    BadInput(
        {"approval": "Manual"},
        "spec.approval: must be an object with policy, planHash, driftBudget, found 'Manual'",
        'spec.approval in body must be of type object: "string"',
    ),
    said_by_both(
        {"approval": {"policy": "Manual", "planHash": "abc"}},
        "spec.approval.planHash",
        "must be a hash as in status.plan.hash: sha256: and 64 hexadecimal digits",
    ),
    *(
        said_by_both(
            {"approval": {**policy, "planHash": f"sha256:{0:064}"}},
            "spec.approval.planHash",
            "requires policy: Manual; with Automatic, the plan is executed without approval",
        )
        for policy in ({"policy": "Automatic"}, {})
    ),
]

BAD_THROTTLES: list[BadInput] = [
    said_by_both({"kafka": {"bootstrapServers": "kafka"}}, "spec.kafka.bootstrapServers", ADDRESSES),
    BadInput({"leaderRate": "50MB"}, f"spec.leaderRate: {_MEGABYTES}", f"must be -1 (unset) or {SERVER_RATE[8:]}"),
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
    said_by_both({"brokers": [{"id": 1}]}, "spec.brokers[0]", "set leaderRate, followerRate or both; -1 means unset"),
    BadInput(
        {"limits": 5},
        "spec.limits: must be an object with parallelPartitionCount, parallelLeaderMovements",
        'spec.limits in body must be of type object: "integer"',
    ),
    BadInput({"freeze": "on"}, "spec.freeze: must be true or false, found 'on'", "must be of type boolean"),
]
