"""kafka-rebalance fleet: each cluster is planned as `plan` plans it alone."""

import json

from click.testing import CliRunner

from kafka_rebalance.cli.commands.fleet_command import plan_as_alone
from kafka_rebalance.cli.commands.plan_command import plan

CLUSTER = {
    "brokers": [{"id": 0}, {"id": 1}],
    "partitions": [{"topic": "t", "partition": n, "replicas": [0], "size": 1024} for n in range(4)],
}


def test_the_document_is_that_of_plan() -> None:
    """With none of the options of plan, whichever there are."""
    text = json.dumps(CLUSTER)
    alone = json.loads(CliRunner().invoke(plan, ["--cluster", "-", "-o", "json"], input=text).stdout)
    found = plan_as_alone(text.encode(), None)
    assert found["partitions"] == alone["partitions"] != []
    assert found["summary"]["hash"] == alone["summary"]["hash"]
    assert (found["clusterSize"], found["warnings"]) == ({"brokers": 2, "partitions": 4}, [])
