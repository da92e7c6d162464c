"""The language of a page: as declared, unless its script contradicts.

The script tells Chinese, Japanese and Korean apart, which decides how a text is segmented; a template with
`lang="en"` around a Chinese article is common. A statistical detector (py3langid) was measured and not used:
it takes 0.8 s to load and 1 ms a page, only to tell apart languages in Latin script, which are all segmented
alike.
"""

import re

from lxml.html import HtmlElement

SAMPLE_CHARS = 2000
MAX_TAG_CHARS = 100
SCRIPT_SHARE = 0.2
KANA_SHARE = 0.05
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")
# Runs of characters are counted together: one match for each character takes twice as long.
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]+")
_KANA = re.compile(r"[\u3040-\u30ff]+")
_HANGUL = re.compile(r"[\uac00-\ud7af]+")
_LETTER = re.compile(r"[^\W\d_]+")
SCRIPT_LANGUAGES = ("zh", "ja", "ko")


def declared_language(root: HtmlElement, *stated: str | None) -> str | None:
    """Return the first well-formed tag of <html lang>, xml:lang and `stated`."""
    for value in (root.get("lang"), root.get("xml:lang"), *stated):
        if value and len(tag := value.strip()) <= MAX_TAG_CHARS and _TAG.fullmatch(tag):
            return str(tag).replace("_", "-")
    return None


def language(text: str, declared: str | None) -> str | None:
    """Return the declared tag if the script allows it, else the language of the script, else None.

    >>> language("新闻网站的编辑们", "en"), language("Editors of news sites", "en-GB")
    ('zh', 'en-GB')
    """
    sample = text[:SAMPLE_CHARS]
    letters = _count(_LETTER, sample)
    if not letters:
        return declared
    script = _by_script(sample, letters)
    primary = declared.split("-")[0].lower() if declared else None
    if script is None:
        return None if primary in SCRIPT_LANGUAGES else declared
    return declared if primary == script else script


def _by_script(sample: str, letters: int) -> str | None:
    kana, hangul, han = (_count(pattern, sample) for pattern in (_KANA, _HANGUL, _HAN))
    if hangul >= SCRIPT_SHARE * letters:
        return "ko"
    if kana >= KANA_SHARE * letters and kana + han >= SCRIPT_SHARE * letters:
        return "ja"
    return "zh" if han >= SCRIPT_SHARE * letters else None


def _count(runs: re.Pattern[str], sample: str) -> int:
    return sum(map(len, runs.findall(sample)))
