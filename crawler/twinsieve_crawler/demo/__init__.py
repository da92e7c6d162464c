"""A small news site of our own, with the truth about every page, to try the filter on.

All its text was written for this project. `articles` reads the stories, `edits` makes the copies that news
sites make of each other, `site` says which site copies which story, `templates` renders them as five
different sites, `site` builds all pages with their truth, `server` serves them on localhost, and `report`
compares the verdicts with the truth.
"""
