"""What a round reads from Kafka."""
