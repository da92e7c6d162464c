"""The block index, which finds candidates by Hamming distance, and what Python knows of the cell index.

The tables are native (`dedup_service._native`): a decider has its own.
"""
