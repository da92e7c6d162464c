"""Text of pages: decoded, normalised, cut into words and character n-grams."""
