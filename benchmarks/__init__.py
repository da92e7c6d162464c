"""Benchmarks: one script for each claim. Each names its data, its seed and what it is compared with."""
