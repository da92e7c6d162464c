"""Generated pages for throughput and latency: Chinese text of 2 KB, and HTML of 60 KB.

A tenth of the text pages repeat an earlier one at another URL, so that every contender has duplicates to
find. Invariant: the same seed gives the same bytes.
"""

import json
import random
from collections import deque
from collections.abc import Iterator

from tests.crawls.stream import Kind, RecordTruth, Sent
from tests.crawls.texts import Writer
from twinsieve_crawler.demo.templates import FRAMES

TEXT_BYTES = 2_000
HTML_BYTES = 60_000
COPIES = 0.1


def text_pages(seed: int, count: int) -> Iterator[Sent]:
    """Yield Chinese text pages whose record value has about TEXT_BYTES."""
    rng = random.Random(seed)
    writer, earlier = Writer(rng), deque([""], maxlen=1000)
    for number in range(count):
        if number and rng.random() < COPIES:
            text = rng.choice(earlier)
        else:
            text = writer.chinese((TEXT_BYTES - 150) // 3)
            earlier.append(text)
        yield _sent(number, writer.title(), {"text": text})


def html_pages(seed: int, count: int, *, distinct: int = 400) -> Iterator[Sent]:
    """Yield HTML pages of about HTML_BYTES. distinct: number of different frames; each text is different."""
    rng = random.Random(seed)
    writer = Writer(rng)
    surroundings = [_surroundings(rng, writer) for _ in range(min(distinct, count))]
    for number in range(count):
        paragraphs = [writer.chinese(180) for _ in range(8)]
        title = writer.title()
        html = rng.choice(surroundings).replace("{title}", title).replace("{story}", _paragraphs(paragraphs))
        yield _sent(number, title, {"html": html})


def _sent(number: int, title: str, body: dict[str, str]) -> Sent:
    url = f"https://site{number % 50}.example/{number}"
    value = json.dumps({"id": f"p{number}", "url": url, "title": title, **body}, ensure_ascii=False).encode()
    return Sent(url.encode(), value, (), RecordTruth(Kind.STORY, url, url))


def _paragraphs(texts: list[str]) -> str:
    return "".join(f"<p>{text}</p>\n" for text in texts)


def _surroundings(rng: random.Random, writer: Writer) -> str:
    """Return the frame of a news page: styles, scripts, menus, lists of other stories, a footer."""
    links = [(f"https://daily.example/{rng.randrange(10**6)}", writer.title()) for _ in range(120)]
    teasers = "".join(
        f'<div class="card"><a href="{url}"><img src="{url}.jpg" alt=""><h4>{title}</h4></a><p>{writer.chinese(40)}</p>'
        f'<span class="meta">{rng.randrange(24)}:{rng.randrange(60):02}</span></div>\n'
        for url, title in links[:60]
    )
    main = f"<article><h1>{{title}}</h1>\n{{story}}</article><aside>{teasers}</aside>"
    page = FRAMES["daily"].render("{title}", main, links).decode()
    filler = max(0, HTML_BYTES - len(page.encode()) - 8 * 180 * 3)
    rules = [f".c{n}{{margin:{n % 40}px;color:#{rng.randrange(1 << 24):06x}}}" for n in range(filler // 60)]
    calls = [f"track({rng.randrange(10**9)},'{rng.randrange(10**9)}');" for _ in range(filler // 60)]
    head = f"<style>{''.join(rules)}</style><script>{''.join(calls)}</script></head>"
    return page.replace("</head>", head, 1)
