"""The throttle of one Kafka cluster: claims, rates, lists and the ledger."""
