"""From candidates to verdicts: a deterministic function of the log."""
