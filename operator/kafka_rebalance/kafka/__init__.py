"""Kafka: the ports the rest is written against, and the two clients behind them."""
