"""Pages of two daily series: the same frame and phrases, with other days and other numbers.

They look alike but are not copies of each other, so each must be kept.
"""

import json
from functools import cache
from importlib.resources import files
from typing import Any

from twinsieve_crawler.demo.articles import Article


def _weather(number: int, day: dict[str, Any]) -> Article:
    """Return the weather bulletin of one day."""
    date = f"{day['date'][5:7]}月{day['date'][8:]}日"
    return Article(
        name=f"zh-weather-{number}",
        lang="zh",
        title=f"青河市天气预报（{date}）",
        headline="",
        section="weather",
        author="市气象台",
        date=day["date"],
        tags=("天气",),
        paragraphs=(
            (
                f"市气象台{date}清晨五时发布：今天白天{day['sky']}，最高气温{day['high']}度，最低气温{day['low']}度，"
                f"{day['wind']}，平均相对湿度{day['humidity']}%。"
            ),
            day["remark"],
            "更多预报请收听早间广播，或拨打气象热线。",
        ),
    )


def _market(number: int, day: dict[str, Any]) -> Article:
    """Return the closing report of the exchange for one day."""
    return Article(
        name=f"en-market-{number}",
        lang="en",
        title=f"Maren exchange: closing report, {day['date']}",
        headline="",
        section="business",
        author="Markets desk",
        date=day["date"],
        tags=("markets",),
        paragraphs=(
            (
                f"The Maren index closed at {day['index']} on {day['date']}, {day['change']} per cent. "
                f"Heating oil stood at {day['oil']} crowns a barrel and one crown bought {day['rate']} florins."
            ),
            day["remark"],
            "Prices are as of half past four. The exchange opens again at nine.",
        ),
    )


@cache
def series_articles() -> tuple[Article, ...]:
    """Return all pages of both series, weather first, oldest first."""
    days = json.loads((files("twinsieve_crawler.demo") / "series.json").read_text("utf-8"))
    weather = [_weather(number, day) for number, day in enumerate(days["weather"], start=1)]
    market = [_market(number, day) for number, day in enumerate(days["market"], start=1)]
    return (*weather, *market)
