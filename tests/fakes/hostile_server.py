"""A server with a minimal part of Kafka's protocol, which sends a client answers that no broker would send."""

import asyncio
import contextlib
import struct

API_VERSIONS, METADATA, INCREMENTAL_ALTER_CONFIGS, DESCRIBE_CLUSTER = 18, 3, 44, 60
_OF_2_6 = (48, 0, 0)
"""From a request of this version, kafka-python concludes that the client is to wait when it is throttled."""
_APIS = [(METADATA, 0, 4), (API_VERSIONS, 0, 3), (INCREMENTAL_ALTER_CONFIGS, 0, 0), (DESCRIBE_CLUSTER, 0, 0), _OF_2_6]
_NO_TOPIC = "kafka-rebalance-no-such-topic"
"""The topic of our client's first request."""
_MIB = 2**20


def _int(number):
    return struct.pack(">i", number)


def _string(text):
    return struct.pack(">h", -1) if text is None else struct.pack(">h", len(text)) + text.encode()


def _compact(text):
    return b"\0" if text is None else bytes([len(text) + 1]) + text.encode()


def _array(*entries):
    return _int(len(entries)) + b"".join(entries)


def _topic(name, error=3, *partitions):
    return struct.pack(">h", error) + _string(name) + b"\0" + _array(*partitions)


class HostileServer:
    """Answers ApiVersions, Metadata and DescribeCluster, by default as a healthy broker; no other requests.

    - ``topic``: name of the topic in the answer to the first Metadata request of the client. None is a null name; with
      an empty name, the answer has no topic.
    - ``host``: host of each broker in the answers to Metadata. None is a null host.
    - ``brokers``: number of brokers in the answers to Metadata. All have the port of this server.
    - ``interface``: address of this machine at which it listens.
    - ``unfinished_mib``: size in MiB of the answer to each request. The announced size is one byte more, and this byte
      is never sent. 0: answers are complete.

    ``throttle_ms`` in an answer to DescribeCluster tells the client to send nothing for that long, as a quota does.
    ``cluster_id`` is the id in its answers. ``partitions`` has the number of partitions of each topic that exists, by
    name. ``asked`` has the API key of each request received, in order. ``address`` is host:port.
    """

    def __init__(self, *, topic=_NO_TOPIC, host="127.0.0.1", brokers=1, unfinished_mib=0, interface="127.0.0.1"):
        self.topic, self.host, self.brokers, self.unfinished_mib = topic, host, brokers, unfinished_mib
        self._interface = interface
        self.asked = []
        self.cluster_id = "a-cluster"
        self.throttle_ms = 0
        self.partitions = {}
        self.address = ""

    async def __aenter__(self):
        self._server = await asyncio.start_server(self._serve, self._interface, 0)
        self._port = self._server.sockets[0].getsockname()[1]
        self.address = f"{self._interface}:{self._port}"
        return self

    async def __aexit__(self, *_):
        self._server.close()

    async def _serve(self, reader, writer):
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                request = await reader.readexactly(size)
                key, version, correlation = struct.unpack(">hhi", request[:8])
                self.asked.append(key)
                if self.unfinished_mib:
                    await self._leave_unfinished(writer)
                elif key == API_VERSIONS:
                    self._write(writer, correlation, self._versions(version))
                elif key == METADATA:
                    self._write(writer, correlation, self._metadata(request))
                elif key == DESCRIBE_CLUSTER:
                    self._write(writer, correlation, b"\0" + self._cluster())

    async def _leave_unfinished(self, writer):
        writer.write(_int(self.unfinished_mib * _MIB + 1))
        for _ in range(self.unfinished_mib):
            writer.write(bytes(_MIB))
            await writer.drain()

    def _write(self, writer, correlation, body):
        writer.write(_int(len(body) + 4) + _int(correlation) + body)

    def _versions(self, version):
        if version < 3:
            return b"\0\0" + _array(*(struct.pack(">hhh", *api) for api in _APIS)) + (_int(0) if version else b"")
        rows = b"".join(struct.pack(">hhh", *api) + b"\0" for api in _APIS)
        return b"\0\0" + bytes([len(_APIS) + 1]) + rows + _int(0) + b"\0"

    def _metadata(self, request):
        brokers = [
            _int(number) + _string(self.host) + _int(self._port) + _string(None) for number in range(self.brokers)
        ]
        names = [name for name in self.partitions if name.encode() in request]
        topics = [_topic(name, 0, *map(self._partition, range(self.partitions[name]))) for name in names]
        if _NO_TOPIC.encode() in request:
            topics += [_topic(self.topic)] if self.topic != "" else []
        return _int(0) + _array(*brokers) + _string(self.cluster_id) + _int(0) + _array(*topics)

    def _cluster(self):
        brokers = [
            _int(number) + _compact(self.host) + _int(self._port) + _compact(None) + b"\0"
            for number in range(self.brokers)
        ]
        head = _int(self.throttle_ms) + b"\0\0" + _compact(None) + _compact(self.cluster_id) + _int(0)
        return head + bytes([len(brokers) + 1]) + b"".join(brokers) + _int(0) + b"\0"

    def _partition(self, number):
        return b"\0\0" + _int(number) + _int(0) + _array(_int(0)) + _array(_int(0))


CRASHING = {"a topic without a name": {"topic": None}, "a broker without a host": {"host": None}}
"""Answers that crash librdkafka 2.16."""
