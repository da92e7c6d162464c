"""`twinsieve crawl` and `twinsieve demo`. Scrapy is imported when they run, not for `--help`."""

from twinsieve_crawler.cli.crawl import crawl_command
from twinsieve_crawler.cli.demo import demo_command

__all__ = ["crawl_command", "demo_command"]
