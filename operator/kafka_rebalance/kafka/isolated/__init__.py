"""The clients of servers that nobody vouches for, each in a process of its own.

Anybody who may create a KafkaRebalance can name a server. Its answers can end a client library, or fill the memory, and
with that the process that it is in. The operator has to outlive that, for all others.
"""
