"""Changes to a short text: four operators that change its meaning, and four that do not.

An operator turns a text into a pair, or None if it does not apply (no number to change). The first text of a
pair is usually the original text; the operator that changes a date first adds one to a text without a date.
All randomness comes from the given generator, so a seed gives the same pairs. Words and names come from the
texts, cut by rjieba.
"""

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import rjieba

from dedup_service._native import fold

Names = Mapping[str, Sequence[str]]
"""Names of persons, places and organisations, by tag of rjieba (nr, ns, nt)."""

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Operator:
    """A change to a text. harmless: the two texts have the same meaning; apply: makes a pair."""

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
    """Return the names of at least two characters in `texts`, each once, in order of appearance."""
    found: dict[str, dict[str, None]] = {tag: {} for tag in _NAME_TAGS}
    for text in texts:
        for word, tag in rjieba.tag(text):
            if tag in found and len(word) > 1 and word.isalpha():
                found[tag][word] = None
    return {tag: list(words) for tag, words in found.items()}


def _number(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Change one digit of a number that is not part of a date."""
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
    """Change a day, month or year; a text without a date gets one in front."""
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
    """Replace a name everywhere by another of the same kind, of the same length if there is one."""
    found = sorted({(word, tag) for word, tag in rjieba.tag(text) if tag in names and len(word) > 1})
    if not found:
        return None
    word, tag = rng.choice(found)
    others = [name for name in names[tag] if name != word and word not in name and name not in word]
    others = [name for name in others if len(name) == len(word)] or others
    return (text, text.replace(word, rng.choice(others))) if others else None


def _negation(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Remove a negation if there is one, else insert one before a verb."""
    present = [negated for negated in _NEGATED if negated in text]
    if present:
        negated = rng.choice(present)
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
    """Add one to three emoji at the end, at the start, or between two sentences."""
    return text, _added(text, "".join(rng.choices(_EMOJI, k=rng.randint(1, 3))), rng)


def _emoticon(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Add one to three emoticons of weibo, which are words in brackets."""
    return text, _added(text, "".join(rng.choices(_EMOTICONS, k=rng.randint(1, 3))), rng)


def _added(text: str, addition: str, rng: random.Random) -> str:
    ends = [match.end() for match in re.finditer("[，。！？,!?]", text)]
    place = rng.choice([len(text), len(text), 0, rng.choice(ends or [len(text)])])
    return text[:place] + addition + text[place:]


def _punctuation(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Change punctuation: narrow or wide forms, spaces, other marks at the end, or quotation marks."""
    changes: list[Callable[[str], str]] = [
        lambda value: value.translate(_NARROW),
        lambda value: value.translate(_WIDE),
        lambda value: re.sub("[，、：]", " ", value),
        lambda value: value.rstrip("。！？!?…") + rng.choice(("！！！", "。", "……", "？！", "~")),
        lambda value: value.replace("“", "「").replace("”", "」"),
        lambda value: "“" + value + "”",
    ]
    for change in rng.sample(changes, len(changes)):
        if (changed := change(text)) != text:
            return text, changed
    return None


def _repost(text: str, rng: random.Random, _names: Names) -> Pair | None:
    """Add the prefix of a repost."""
    return text, rng.choice(_PREFIXES).format(rng.choice(_HANDLES)) + text


def _checked(name: str, harmless: bool, make: Callable[[str, random.Random, Names], Pair | None]) -> Operator:
    """Return an operator that rejects meaningful changes which folding removes."""

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
