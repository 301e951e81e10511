"""Reads the load model of a cluster. One that is stale, damaged or of another cluster is logged and ignored."""

import asyncio
import logging
import re
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

from kafka_rebalance.errors import RebalanceError
from kafka_rebalance.model.load import LoadModel
from kafka_rebalance.model.load_artifact import check_fresh, parse_load_model

log = logging.getLogger(__name__)

MAX_AGE = timedelta(hours=24)
_CLUSTER_ID = re.compile(r"[A-Za-z0-9_-]+")


class LoadModelFiles:
    """``<directory>/<cluster id>/load-model.json.gz``, as ``kafka-rebalance pipeline load-model`` writes it."""

    def __init__(self, directory: Path | None, now: Callable[[], datetime]) -> None:
        self._directory = directory
        self._now = now

    async def __call__(self, cluster_id: str) -> LoadModel | None:
        """The model of a cluster; None if there is no fresh one."""
        if self._directory is None:
            return None
        if not _CLUSTER_ID.fullmatch(cluster_id):  # a server says it, and it becomes part of a path
            log.warning("no load model for cluster %r: an id has only letters, digits, _ and -", cluster_id)
            return None
        path = self._directory / cluster_id / "load-model.json.gz"
        try:
            data = await asyncio.to_thread(path.read_bytes)
        except FileNotFoundError:
            return None
        except OSError as error:
            log.warning("load model of cluster %s cannot be read: %s", cluster_id, error.strerror)
            return None
        try:
            model = parse_load_model(data)
            check_fresh(model, self._now(), MAX_AGE)
        except RebalanceError as error:
            log.warning("load model of cluster %s is not used: %s", cluster_id, error.message)
            return None
        if model.cluster_id != cluster_id:
            log.warning("load model of cluster %s is not used: it belongs to cluster %s", cluster_id, model.cluster_id)
            return None
        return model
