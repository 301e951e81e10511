"""Observe, decide, act, report: one engine per Kafka cluster."""
