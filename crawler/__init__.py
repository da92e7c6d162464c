"""A ready-to-run Scrapy project on top of the add-on, used as anyone would use it.

`spiders.site` walks a site, `settings` keeps it polite, `items` is what its feeds hold, `running` runs it in
this process, `cli` is `twinsieve crawl` and `twinsieve demo`, and `demo` is a news site to try it on.
"""
