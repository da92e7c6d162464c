"""Scrapy settings of the project: polite by default, filter switched on, breadth first.

The `TWINSIEVE_*` settings are read in `dedup_service.interfaces.scrapy.settings`. Each setting can be changed
with `twinsieve crawl --set NAME=VALUE` or `scrapy crawl site -s NAME=VALUE`.
"""

BOT_NAME = "twinsieve"
SPIDER_MODULES = ["twinsieve_crawler.spiders"]
NEWSPIDER_MODULE = "twinsieve_crawler.spiders"

ADDONS = {"dedup_service.scrapy.NearDuplicateAddon": 500}
TWINSIEVE_KEEP_PAGE = True  # items are made from the page that the filter extracted

# Polite: obey robots.txt, two requests at a time to one host, with a delay that adapts to its response times.
USER_AGENT = "twinsieve/0.1 (a crawler that keeps each article once)"
ROBOTSTXT_OBEY = True
CONCURRENT_REQUESTS_PER_DOMAIN = 2
DOWNLOAD_DELAY = 0.5
AUTOTHROTTLE_ENABLED = True
AUTOTHROTTLE_START_DELAY = 1.0
COOKIES_ENABLED = False

DOWNLOADER_MIDDLEWARES = {
    "scrapy.downloadermiddlewares.redirect.MetaRefreshMiddleware": None,
    "twinsieve_crawler.refreshing.RefreshMiddleware": 580,  # its place
}

# Breadth first: front pages and sections before the depths of an archive.
DEPTH_PRIORITY = 1
SCHEDULER_DISK_QUEUE = "scrapy.squeues.PickleFifoDiskQueue"
SCHEDULER_MEMORY_QUEUE = "scrapy.squeues.FifoMemoryQueue"

DOWNLOAD_MAXSIZE = 64 * 2**20
CONCURRENT_ITEMS = 8  # tasks that Scrapy starts for each response; ours yields one item
TELNETCONSOLE_ENABLED = False
REMOTE_CONTROL_ENABLED = False
EXTENSIONS = {"scrapy.extensions.feedexport.FeedExporter": None, "twinsieve_crawler.watching.Feed": 0}
FEED_EXPORT_ENCODING = "utf-8"
