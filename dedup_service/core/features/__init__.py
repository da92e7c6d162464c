"""Weighting schemes: from the words of a page to the weights of its features.

`factors` has the published formulas one by one, `schemes` puts them together under their names,
`seed_java` is the seed's Java program, whose features are its own.
"""
