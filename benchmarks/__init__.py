"""Measurements: one script per claim, each printing a ratio against a named peer."""
