"""Kafka: the ports that the rest of the operator uses, and the two client libraries behind them."""
