"""The command line, kafka-rebalance."""
