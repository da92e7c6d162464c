"""Pages for the extraction tests: our own writing, in the form of news sites."""

PARAGRAPHS_ZH = (
    "本市图书馆昨日宣布，从下月起延长周末开放时间，读者可以在馆内停留到晚上十点，以方便白天上班的市民借阅图书。",
    "馆长表示，这项安排来自去年秋天的问卷调查，参加调查的两千多位读者中，有七成希望周末晚上也能使用自习室。",
    "为了应对增加的工作量，图书馆招募了四十名志愿者，他们将在三个楼层轮流值班，并接受为期一周的培训。",
    "除了延长时间，图书馆还计划更新电子阅览设备，预计明年春天完成，届时读者可以在线预约座位并查询馆藏。",
)  # fmt: skip
PARAGRAPHS_EN = (
    "The harbour council approved a plan on Tuesday to rebuild the old pier before the winter storms arrive.",
    "Engineers told the meeting that the wooden piles had lost a third of their strength since they were driven in.",
    "Fishermen will use a floating landing stage while the work goes on, the council promised after three years.",
)
RELATED_ZH = (
    "地铁三号线今日起调整首末班时间", "城南公园的樱花提前一周开放", "市中心菜市场完成改造重新营业",
    "高校联合举办冬季长跑比赛", "老城区旧楼加装电梯进度过半", "气象台预计周末将有小雨",
)  # fmt: skip


def news_page(
    paragraphs: tuple[str, ...] = PARAGRAPHS_ZH,
    *,
    title: str = "图书馆延长周末开放时间",
    site: str = "南山日报",
    related: tuple[str, ...] = RELATED_ZH,
    head: str = "",
    lang: str = "zh-CN",
) -> str:
    """Return a page with an article between a menu and a list of links to other articles."""
    links = "".join(f'<li><a href="/news/{n}.html">{text}</a> 03-1{n}</li>' for n, text in enumerate(related))
    body = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"""<!DOCTYPE html>
<html lang="{lang}"><head><title>{title}_{site}</title>{head}<script>var a = "<p>脚本</p>";</script></head>
<body><div class="top"><a href="/">首页</a> <a href="/city">城市</a> <a href="/sport">体育</a></div>
<div class="main"><h1>{title}</h1><div class="text">{body}</div>
<div class="more"><h3>相关阅读</h3><ul>{links}</ul></div></div>
<div class="bottom"><a href="/about">关于我们</a> | <a href="/contact">联系我们</a></div></body></html>"""
