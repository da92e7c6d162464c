"""The filter as a service on Apache Kafka: exactly once from topic to topic (docs/adr/0012)."""
