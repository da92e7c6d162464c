"""A small news site of our own, with the truth about every page, to try the filter on.

All its text was written for this project. `articles` reads the stories, `site` makes the copies that news sites make of
each other and builds all pages with their truth, `templates` renders them as five different sites, `server` serves them
on localhost, and `report` compares the verdicts with the truth.
"""
