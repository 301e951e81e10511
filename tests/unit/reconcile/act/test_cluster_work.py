"""What the log says of work that is left in a cluster which no resource names any more."""

from kafka_rebalance.model.ownership import Binding, Owner
from kafka_rebalance.reconcile.act.cluster_work import Unfinished

LEFT = Unfinished(Binding("c", Owner("k", "prod")), "throttles or cordons are in place", "delete the ConfigMap l")


def test_with_the_connection_on_record():
    """What the operator does, and what an administrator can do."""
    assert LEFT.on_record == (
        "cluster c: throttles or cordons are in place, and no resource names it any more: the operator connects as "
        "KafkaConnection k/prod did last, with the same Secrets, and restores them. If that is not possible any more, "
        "delete the ConfigMap l"
    )


def test_without_one():
    """Nothing is guessed."""
    assert "how to connect is not on record, so a resource has to name the cluster again" in LEFT.not_on_record
    assert LEFT.not_on_record.endswith("If that is not possible any more, delete the ConfigMap l")
