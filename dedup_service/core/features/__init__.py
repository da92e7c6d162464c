"""Features: from the words of a page to weights, hashes and the SimHash made of them.

`weighting_factors` has the published formulas one by one, `weighting_schemes` combines them under their
names, and `seed_java` is the seed's Java program, which has its own features.
"""
