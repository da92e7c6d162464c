"""The quantities of two pages that a rule may bound."""

QUANTITIES = (
    *("jaccard", "containment", "min_letters", "length_ratio", "figures", "metadata"),
    *("title", "title_on_host"),
)
