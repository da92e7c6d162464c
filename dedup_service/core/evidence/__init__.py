"""Evidence: what is kept of a page, beside its fingerprints, to find candidates and to verify them."""
