"""Pages of a daily series: the same frame and standing phrases, other days, other numbers.

They look alike and are not copies of each other: each must be kept.
"""

from crawler.demo.articles import Article

__all__ = ["series_articles"]

WEATHER = (
    ("2026-10-19", "多云转阴", 11, 19, "东北风三到四级", 46,
     "受弱冷空气影响，今天夜里云量逐渐增多，山区清晨有轻雾，能见度在一千米左右。上午去江边钓鱼的市民可以多带一件外套，午后云层会裂开几道缝，晒被子的时间大约有三个小时。"),
    ("2026-10-20", "小雨", 9, 14, "偏北风四级", 83,
     "一条窄长的雨带正从西边移过来，预计早高峰前后抵达老城区，雨量虽小，持续时间却长，路面湿滑，骑车的朋友请放慢速度。低洼的纺织路和南市口已经安排了排水泵车值守，雨鞋今天派得上用场。"),
    ("2026-10-21", "晴", 6, 18, "西北风二级", 38,
     "雨过天晴，夜里辐射降温明显，城郊的菜地早晨可能见霜，没有收完的辣椒和茄子最好盖一层薄膜。白天阳光充足，昼夜温差达到十二度，适合登高望远，傍晚五点半以后天空会出现漂亮的晚霞。"),
    ("2026-10-22", "晴转多云", 8, 21, "南风三级", 52,
     "暖空气开始回头，气温小幅回升，花粉浓度同步上升，对蒿草过敏的人群出门应当戴口罩。周末前没有明显降水，小麦播种的墒情较好，农技人员建议抓紧三天的窗口期下种，不要再等下一场雨。"),
)
MARKET = (
    ("2026-10-19", "412.6", "up 0.8", "71.4", "1.238",
     "Shipping firms led the way after two of them settled a quarrel over berths at the container terminal. Fishing companies slipped because the autumn quota for mackerel came in lower than their forecasts. The bakery chain Hearth & Daughters, listed only in June, rose by a tenth on news that it will open inside railway stations."),
    ("2026-10-20", "405.9", "down 1.6", "69.8", "1.231",
     "A day without computers at the port unsettled traders who had forgotten it was a rehearsal. Insurers lost most, builders least. Orders for timber frames were the strongest since spring, according to the sawmills' association, which usually complains. Two brokers blamed the fall on the weather, and one on his own arithmetic."),
    ("2026-10-21", "407.3", "up 0.3", "70.2", "1.233",
     "Calm returned, and with it the buyers of dull shares: water, sewers, salt. The night train company asked investors for nine million to convert more carriages and had offers for twice that by lunch. Apple prices stayed high following the frost, lifting cider makers while supermarkets sulked near their lowest level of the year."),
    ("2026-10-22", "415.0", "up 1.9", "73.6", "1.245",
     "The central bank left its rate alone, as everybody said it would, and everybody bought all the same. Battery makers jumped when the ferry operator disclosed that running costs were a quarter below plan. A rumour that the glassworks had found a Canadian suitor proved to be about a different glassworks, but only after closing time."),
)


def weather(day: int) -> Article:
    """The town's weather bulletin of one of four days."""
    date, sky, low, high, wind, humidity, remark = WEATHER[day]
    month, number = date[5:7], date[8:]
    return Article(
        name=f"zh-weather-{day + 1}", lang="zh", title=f"青河市天气预报（{month}月{number}日）", headline="", section="weather",
        author="市气象台", date=date, tags=("天气",),
        paragraphs=(
            f"市气象台{month}月{number}日清晨五时发布：今天白天{sky}，最高气温{high}度，最低气温{low}度，{wind}，平均相对湿度{humidity}%。",
            remark,
            "更多预报请收听早间广播，或拨打气象热线。",
        ),
    )


def market(day: int) -> Article:
    """The exchange's closing report of one of four days."""
    date, index, change, oil, rate, remark = MARKET[day]
    return Article(
        name=f"en-market-{day + 1}", lang="en", title=f"Maren exchange: closing report, {date}", headline="", section="business",
        author="Markets desk", date=date, tags=("markets",),
        paragraphs=(
            f"The Maren index closed at {index} on {date}, {change} per cent. Heating oil stood at {oil} crowns a barrel and one crown bought {rate} florins.",
            remark,
            "Prices are as of half past four. The exchange opens again at nine.",
        ),
    )


def series_articles() -> tuple[Article, ...]:
    """All pages of both series, weather first, oldest first."""
    return (*map(weather, range(len(WEATHER))), *map(market, range(len(MARKET))))
