"""What `pipeline quality` says of the samples of one cluster."""

from kafka_rebalance.cli.tables.quality_lines import quality_lines
from kafka_rebalance.model.goals import LoadResource
from kafka_rebalance.pipeline.broker_loads import BrokerLoad
from kafka_rebalance.pipeline.hot_partitions import HotPartition
from kafka_rebalance.pipeline.model_file import ModelSummary
from kafka_rebalance.pipeline.quality import QualityReport
from kafka_rebalance.pipeline.sample_manifests import Skipped

HOSTILE = "\x1b]0;x\x07\n"
SHOWN = "\\x1b]0;x\\x07\\n"


def report(cluster_id, skipped, model):
    return QualityReport(cluster_id, None, None, 0, None, (), {}, {}, (), {}, 0, skipped, 0, 0.0, model)


def test_names_of_others_control_no_terminal():
    """The names of topics and files come from brokers and from writers of the lake, so neither is trusted."""
    hot = (HotPartition(HOSTILE, 0, 0.5),)
    loads = (BrokerLoad(1, LoadResource.BYTES_IN, 1.0, 1.0, 1.0, 288, 288, 40, 40, hot),)
    model = ModelSummary(0, 0, 0.0, {}, {}, {"lineage": {}}, {}, loads)
    lines = list(quality_lines(report(HOSTILE, (Skipped(HOSTILE, HOSTILE),), model)))
    assert lines[0] == f"cluster {SHOWN}"
    assert f"  skipped    {SHOWN}: {SHOWN}" in lines
    assert lines[-1] == f"  brokers    BytesIn: hot partition {SHOWN}-0, 50% of what broker 1 has"
