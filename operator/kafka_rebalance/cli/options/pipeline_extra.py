"""What the commands of the pipeline need that is not installed by default, and the errors of the store of a lake."""

from collections.abc import Iterator
from contextlib import contextmanager

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


@contextmanager
def lake_store(lake: str) -> Iterator[None]:
    """Transient (LakeUnusable) if the store of the lake fails in the middle of something."""
    from kafka_rebalance.storage.locations import store_failed, without_credentials

    try:
        yield
    except BrokenPipeError:
        raise  # of our own output
    except OSError as error:
        raise store_failed(f"the lake {without_credentials(lake)} cannot be used", error) from error
