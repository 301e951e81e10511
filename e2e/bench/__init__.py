"""The test bench: starts real Kafka and Kubernetes for tests and for the demo, and judges the outcome.

It must not import the product: what it confirms would otherwise be confirmed by the code under test.
"""
