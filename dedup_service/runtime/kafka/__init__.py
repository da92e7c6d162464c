"""The filter behind a broker: exactly once from topic to topic, on Apache Kafka (docs/adr/0012)."""
