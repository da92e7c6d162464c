"""Chooses and checks thresholds with labelled pages and pairs.

`scoring` measures verdicts, `calibration` chooses thresholds; `candidate_pairs` and `active_sampling` find
the pairs that a person is asked to label.
"""
