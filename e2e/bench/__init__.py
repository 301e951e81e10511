"""The test bench: starts real Kafka and Kubernetes for the tests and the demo, and checks the outcome.

It must not import the product: otherwise the code under test would confirm itself.
"""
