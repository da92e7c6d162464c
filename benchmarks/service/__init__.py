"""What the measurements of the Kafka service share: streams with known truth, the oracle, processes, faults."""
