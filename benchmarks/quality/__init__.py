"""How good the verdicts are, measured: every table and plot of docs/quality.md from the evaluation data.

Read `corpora` (what there is), `parts` (what is measured, in the order of the page), then any part. A part returns
plain values; `page` and the plots turn them into what people read, so a page cannot drift from its numbers.
"""
