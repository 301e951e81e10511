"""The forking process of clients whose open files count as if each were a socket with 128 MiB of unread data."""

import socket
import sys

from kafka_rebalance.kafka.isolated import forking, memory_bound

if __name__ == "__main__":
    memory_bound.SOCKET_BYTES = 128 * 2**20
    forking.run(socket.socket(fileno=int(sys.argv[1])))
