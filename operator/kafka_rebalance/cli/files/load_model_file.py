"""Reads the load model of an option: a file, ``-`` for stdin, or the URI of one in an object store."""

from typing import BinaryIO, cast

import click

from kafka_rebalance.cli.files.file_errors import parsed
from kafka_rebalance.model.load import LoadModel


def read_load_model(place: str) -> LoadModel:
    """The model. An invalid file is refused, one that is not there is wrong usage."""
    from kafka_rebalance.storage.stored_models import parse_model, read_model_file  # pyarrow is slow to import

    if "://" in place:
        return read_model_file(place)
    file = cast("BinaryIO", click.File("rb").convert(place, None, None))
    return parsed("--load-model", file, parse_model)
