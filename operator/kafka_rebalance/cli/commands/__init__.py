"""The commands of kafka-rebalance, one module each."""
