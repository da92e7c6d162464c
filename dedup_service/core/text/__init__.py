"""Text of pages: decoding, normalisation, words and character n-grams."""
