"""The forking process of clients whose namespaces have little CPU time, and get no more."""

import socket
import sys

from kafka_rebalance.kafka.isolated import cpu_share, forking

if __name__ == "__main__":
    cpu_share.SAVED_SECONDS = 0.5
    cpu_share.PER_SECOND = 0.0
    forking.run(socket.socket(fileno=int(sys.argv[1])))
