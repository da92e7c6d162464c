"""`twinsieve crawl` and `twinsieve demo`. Scrapy is imported when they run, not for `--help`."""

from crawler.cli.crawl import crawl_command
from crawler.cli.demo import demo_command

__all__ = ["crawl_command", "demo_command"]
