"""Clients of untrusted servers. Each client runs in a separate process.

Every user who may create a KafkaRebalance can name a server. The answers of the server can crash a client library or
exhaust the memory of its process. The operator must survive this, for all other users.
"""
