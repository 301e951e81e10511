"""The forking process of clients that wait minutes for an answer: on a busy machine, too, only memory ends them."""

import socket
import sys

from kafka_rebalance.kafka import confluent
from kafka_rebalance.kafka.isolated.forking import run

_SECONDS = 240
_of_product = confluent.librdkafka_config


def _patient(settings):
    timeouts = ("socket.timeout.ms", "api.version.request.timeout.ms")
    return _of_product(settings) | dict.fromkeys(timeouts, _SECONDS * 1000)


if __name__ == "__main__":
    confluent.librdkafka_config = _patient
    confluent.CALL_SECONDS = confluent.REQUEST_SECONDS = _SECONDS
    run(socket.socket(fileno=int(sys.argv[1])))
