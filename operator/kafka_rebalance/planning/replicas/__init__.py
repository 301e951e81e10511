"""Which brokers hold each partition: the fewest moves at the fairest counts."""
