"""Labelled pairs, measured quality and thresholds: label, evaluate, calibrate."""
