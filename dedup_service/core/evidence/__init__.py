"""What is kept of a page beside its fingerprints, to verify a candidate with and to find more of them."""
