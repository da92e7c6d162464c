"""Explains a verdict, as values: what the index searched, what the rule checked, what weighed most.

Everything is computed from what is stored of the pages; nothing is recorded while deciding. An explanation
therefore costs nothing until it is requested, and it is right as long as the rule is the one that decided.
Begin with `pair`, which explains one pair of pages.
"""
