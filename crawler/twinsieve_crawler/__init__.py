"""A ready-to-run Scrapy project, which uses the add-on as any project would.

`spiders.site` walks a site, `settings` keeps it polite, `items` defines what its feeds contain, `running`
runs it in this process, `cli` has `twinsieve crawl` and `twinsieve demo`, and `demo` is a news site to try
it on.
"""
