"""How good verdicts are, and which thresholds to choose."""
