"""What the commands of the pipeline need that is not installed by default."""

from kafka_rebalance.errors import Permanent
from kafka_rebalance.reasons import Reason


def require_extra(module: str) -> None:
    """Permanent (ExtraMissing) with what to install if the module is missing."""
    try:
        __import__(module)
    except ImportError as error:
        raise Permanent(
            Reason.EXTRA_MISSING, f"{module} is not installed: pip install 'kafka-rebalance-operator[pipeline]'"
        ) from error
