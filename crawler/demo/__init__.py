"""A small news site of our own, with the truth about every page, to watch the filter at work.

All text on it was written for this project. `articles` reads the stories, `edits` makes the copies that
news sites make of each other, `templates` dresses them as five different sites, `site` puts it all
together and knows which page repeats which, `server` serves it on localhost, and `report` compares
what the filter said with what is true.
"""
