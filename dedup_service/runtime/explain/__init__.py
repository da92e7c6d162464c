"""Explanations: find what is known of a page and assemble why it has its verdict; `core.explain` has the analysis."""
