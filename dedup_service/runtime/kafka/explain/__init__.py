"""Explanations in the service: pages of the log by sequence, from a deciding process or from the log alone."""
