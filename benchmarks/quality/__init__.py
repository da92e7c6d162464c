"""Quality of the verdicts: every table and picture of docs/quality.md, measured on the evaluation data.

Start with `corpora` (the data) and `parts` (the measurements, in the order of the page), then read any part.
A part returns plain values; `tables`, `page` and `pictures` write them into the document, so it always shows
measured numbers.
"""
