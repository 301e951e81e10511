"""Effects: Kafka orders, stored records, writes to the API server."""
