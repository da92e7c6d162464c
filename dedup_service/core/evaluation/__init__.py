"""Chooses and checks thresholds with labelled pages and pairs.

`scoring` measures verdicts, `calibration` chooses thresholds; `active_sampling` finds
the pairs that a person is asked to label.
"""
