"""The demo: rebalances and a rollback on real brokers and a real API server, explained step by step.

It uses the product as users do, with its commands and kubectl, and must not import it: anybody can repeat what it
shows, and Kafka's own tools confirm every check.
"""
