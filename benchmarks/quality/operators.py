"""What people do to a short text: four changes that make it say something else, and four that do not.

An operator takes a text and gives a pair, or None where it cannot be applied (no number to change). Most pairs begin
with the text as it is; where a date has to be there first, both texts have one. Everything is drawn from the generator
given, so a seed gives the same pairs. Words and names come from the texts themselves, cut by rjieba.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import rjieba

from dedup_service.core.text.normalise import fold

__all__ = ["HARMLESS", "MEANINGFUL", "OPERATORS", "Names", "Operator", "names_in"]

Names = Mapping[str, Sequence[str]]
"""Person, place and organisation names by tag of rjieba (nr, ns, nt)."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Operator:
    """Its name, whether the two texts still say the same, and how to make a pair."""

    name: str
    harmless: bool
    apply: Callable[[str, random.Random, Names], Pair | None]


_NAME_TAGS = ("nr", "ns", "nt")
_DATE = re.compile(r"(?:[0-9]{2,4}年)?[0-9]{1,2}月[0-9]{1,2}[日号]?|[0-9]{2,4}年|[0-9]{1,2}[日号]")
_NUMBER = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_NEGATED = ("不是", "没有", "不会", "不能", "不可", "不要", "不得", "不再", "不应", "不用", "未能", "不用", "不宜")
_AUXILIARY = {"是": "不是", "有": "没有", "会": "不会", "能": "不能", "可": "不可", "要": "不要", "应": "不应"}
_EMOJI = (
    *("😂", "👍", "🔥", "🎉", "😭", "❤️", "🙏", "😡", "👏", "🤔", "💪", "✅", "⚠️", "☀️", "🚀", "📢"),
    *("👍🏽", "👩‍⚕️", "🇨🇳", "🏳️‍🌈", "👨‍👩‍👧", "✨", "‼️", "➡️"),
)
_EMOTICONS = ("[赞]", "[笑哭]", "[doge]", "[怒]", "[鼓掌]", "[心]", "[泪]", "[思考]", "[话筒]", "[吃瓜]")
_HANDLES = ("晨读笔记", "老陈说事", "city_daily", "南方天气", "阿May在路上", "科技小站", "每日一读2", "Lin_Q")
_PREFIXES = (
    *("转发：", "转发微博：", "转发 ", "转：", "转帖：", "[转]", "【转】", "【转发】", "(转)", "（转载）"),
    *("RT ", "RT：", "RT @{}: ", "RT @{}：", "//@{}：", "//@{}:", "回复@{}：", "转自@{}：", "@{}：", "via @{}: "),
    *("【快讯】", "【最新】", "【头条】", "【推荐】", "【热点】", "【分享】"),
)
_NARROW = str.maketrans("，。！？：；（）“”‘’《》【】、", ",.!?:;()\"\"''<>[],")
_WIDE = str.maketrans(",.!?:;()", "，。！？：；（）")


def names_in(texts: Sequence[str]) -> Names:
    """Return the names of two characters and more in `texts`, each once, in order of appearance."""
    found: dict[str, dict[str, None]] = {tag: {} for tag in _NAME_TAGS}
    for text in texts:
        for word, tag in rjieba.tag(text):
            if tag in found and len(word) > 1 and word.isalpha():
                found[tag][word] = None
    return {tag: list(words) for tag, words in found.items()}


def _number(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Another number of as many digits in the place of one that is no date."""
    dates = [match.span() for match in _DATE.finditer(text)]
    found = [match for match in _NUMBER.finditer(text) if not any(a <= match.start() < b for a, b in dates)]
    if not found:
        return None
    match = rng.choice(found)
    digits = [place for place in range(match.start(), match.end()) if text[place].isdigit()]
    place = rng.choice(digits)
    other = rng.choice([digit for digit in "123456789" if digit != text[place]])
    return text, text[:place] + other + text[place + 1 :]


def _date(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Another day, month or year; a text without a date gets one in front."""
    if not _DATE.search(text):
        text = f"{rng.randint(1, 12)}月{rng.randint(1, 28)}日，{text}"
    match = rng.choice(list(_DATE.finditer(text)))
    field = rng.choice(list(re.finditer("[0-9]+", match.group())))
    start, value = match.start() + field.start(), int(field.group())
    unit = text[start + len(field.group()) : start + len(field.group()) + 1]
    maximum = 12 if unit == "月" else 28
    other = value + rng.choice((-2, -1, 1, 2)) if unit == "年" else rng.randint(1, maximum)
    if other == value:
        other = value % maximum + 1
    return text, text[:start] + str(other) + text[start + len(field.group()) :]


def _name(text: str, rng: random.Random, names: Names) -> Pair | None:
    """Another name of the same kind, of the same length where there is one, in the place of each occurrence of one."""
    found = sorted({(word, tag) for word, tag in rjieba.tag(text) if tag in names and len(word) > 1})
    if not found:
        return None
    word, tag = rng.choice(found)
    others = [name for name in names[tag] if name != word and word not in name and name not in word]
    others = [name for name in others if len(name) == len(word)] or others
    return (text, text.replace(word, rng.choice(others))) if others else None


def _negation(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """A negation taken out where there is one, else put before a verb."""
    there = [negated for negated in _NEGATED if negated in text]
    if there:
        negated = rng.choice(there)
        return text, text.replace(negated, negated[1:], 1)
    words = rjieba.tag(text)
    verbs = [place for place, (word, tag) in enumerate(words) if tag == "v" or word in _AUXILIARY]
    if not verbs:
        return None
    place = rng.choice(verbs)
    parts = [word for word, _ in words]
    parts[place] = _AUXILIARY.get(parts[place], rng.choice("不未没") + parts[place])
    return text, "".join(parts)


def _emoji(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """One to three emoji at the end, in front, or between two sentences."""
    return text, _added(text, "".join(rng.choices(_EMOJI, k=rng.randint(1, 3))), rng)


def _emoticon(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """The same of weibo's own, which are words in brackets."""
    return text, _added(text, "".join(rng.choices(_EMOTICONS, k=rng.randint(1, 3))), rng)


def _added(text: str, what: str, rng: random.Random) -> str:
    ends = [match.end() for match in re.finditer("[，。！？,!?]", text)]
    place = rng.choice([len(text), len(text), 0, rng.choice(ends or [len(text)])])
    return text[:place] + what + text[place:]


def _punctuation(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Marks made narrow or wide, spaces for them, others at the end."""
    ways: list[Callable[[str], str]] = [
        lambda value: value.translate(_NARROW),
        lambda value: value.translate(_WIDE),
        lambda value: re.sub("[，、：]", " ", value),
        lambda value: value.rstrip("。！？!?…") + rng.choice(("！！！", "。", "……", "？！", "~")),
        lambda value: value.replace("“", "「").replace("”", "」"),
        lambda value: "“" + value + "”",
    ]
    for way in rng.sample(ways, len(ways)):
        if (changed := way(text)) != text:
            return text, changed
    return None


def _repost(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """What a repost begins with."""
    return text, rng.choice(_PREFIXES).format(rng.choice(_HANDLES)) + text


def _checked(name: str, harmless: bool, make: Callable[[str, random.Random, Names], Pair | None]) -> Operator:
    """An operator whose meaningful changes can be seen: texts that fold to the same are no pair."""

    def apply(text: str, rng: random.Random, names: Names) -> Pair | None:
        pair = make(text, rng, names)
        return None if pair is None or (not harmless and fold(pair[0]) == fold(pair[1])) else pair

    return Operator(name, harmless, apply)


MEANINGFUL = (
    _checked("number", False, _number),
    _checked("date", False, _date),
    _checked("name", False, _name),
    _checked("negation", False, _negation),
)
HARMLESS = (
    _checked("emoji", True, _emoji),
    _checked("emoticon", True, _emoticon),
    _checked("punctuation", True, _punctuation),
    _checked("repost prefix", True, _repost),
)
OPERATORS = (*MEANINGFUL, *HARMLESS)
