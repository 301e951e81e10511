"""The demo: a rebalance and a rollback on real brokers and a real API server, told to somebody who sees it first.

It uses the product as its users do, by its commands and by kubectl, and must not import it: what it shows is what
anybody can do, and what it checks is said by Kafka's own tools.
"""
