"""The quantities of two pages that a rule may bound."""

QUANTITIES = (
    *("jaccard", "containment", "min_letters", "length_ratio", "figures", "numbers", "missing_numbers", "metadata"),
    *("swapped_numbers", "alphabetic", "unspaced", "sentences", "title", "title_on_host"),
)
