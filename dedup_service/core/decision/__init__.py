"""From candidates to verdicts: a deterministic function of the log.

Begin with `decider`; `replica` applies whole logs to it.
"""
