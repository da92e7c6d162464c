"""The bytes of a page as text, and what libraries do with text; folding and cutting are the crate's."""
