"""Shared parts of the Kafka benchmarks: streams with known truth, the oracle, processes and faults."""
