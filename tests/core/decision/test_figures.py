"""`precise` and pages that differ in one figure: generated pairs, Chinese and English, 120 to 5,000 words."""

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from dedup_service._native import ComparedPages, Rule
from dedup_service.core.decision.decider import Decider
from dedup_service.core.decision.entries import entry_of_page
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.core.verdict import VerdictKind
from dedup_service.runtime.resources import build_fingerprinter

PAIRS = 40
LENGTHS = (120, 400, 1000, 5000)
"""Words of a text. Shorter ones match only if they are the same."""

CHANGES = {
    "value": ("{sign}{number} {unit}", "{sign}{other} {unit}"),
    "decimal point": ("{number}.{other} {unit}", "{number}{other} {unit}"),
    "sign": ("−{number} {unit}", "+{number} {unit}"),
    "unit": ("{number} {unit}", "{number} {other_unit}"),
    "per cent": ("{number}%", "{number}"),
    "currency": ("${number}", "€{number}"),
}


@dataclass(frozen=True)
class Language:
    """How texts of a language are made: words, the space between, the end of a sentence, units."""

    word: Callable[[random.Random], str]
    space: str
    end: str
    units: tuple[str, ...]

    def text(self, rng: random.Random, words: int, figure: str) -> str:
        """A text of sentences, of which every second has a number, with `figure` in the middle of one of them."""
        sentences = []
        for at in range(max(1, words // 12)):
            parts = [self.word(rng) for _ in range(11)]
            if at % 2:
                parts.insert(rng.randrange(3, 9), f"{rng.randrange(2, 9999)} {rng.choice(self.units)}")
            sentences.append(parts)
        sentences[rng.randrange(len(sentences))].insert(5, figure)
        return self.end.join(self.space.join(parts) for parts in sentences) + self.end


def english_word(rng: random.Random) -> str:
    """A word of 2 to 9 letters."""
    return "".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9)))


def chinese_word(rng: random.Random) -> str:
    """A word of two characters, none of which is a numeral."""
    return "".join(chr(rng.randrange(0x6000, 0x7000)) for _ in range(2))


LANGUAGES = {
    "English": Language(english_word, " ", ". ", ("kg", "km", "tons", "days", "years", "people")),
    "Chinese": Language(chinese_word, "", "。", ("公里", "公斤", "吨", "天", "年", "人", "万元")),
}


def pair(language: Language, change: str, seed: int) -> tuple[str, str]:
    """Two texts that differ in one figure."""
    unit, other_unit = random.Random(seed).sample(language.units, 2)
    number, other = random.Random(seed + 1).sample(range(2, 2000), 2)
    values = {"sign": "", "number": number, "other": other, "unit": unit, "other_unit": other_unit}
    words = LENGTHS[seed % len(LENGTHS)]
    one, two = (language.text(random.Random(seed), words, form.format(**values)) for form in CHANGES[change])
    return one, two


def prepared(name: str, text: str) -> PreparedPage:
    """A page with this text."""
    url = f"https://{name}.example/"  # no series, which is of one host
    return build_fingerprinter().prepare(Page(url=url, canonical_url=url, id=name, title="a title", text=text))


def compared(profile: str, one: PreparedPage, other: PreparedPage) -> ComparedPages | None:
    """What the rule says of two pages."""
    return Rule(PROFILES[profile]).compare(entry_of_page(1, one, 0), entry_of_page(2, other, 0), ())


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("language", LANGUAGES)
def test_precise_merges_no_pages_that_differ_in_a_figure(language: str, change: str) -> None:
    """It says so, too, whatever the length of the text."""
    for seed in range(PAIRS):
        one, other = (prepared(str(at), text) for at, text in enumerate(pair(LANGUAGES[language], change, seed)))
        assert one.text_hash != other.text_hash
        found = compared("precise", one, other)
        assert found is not None
        assert (found.score, found.reason) == (None, "differs in a figure from"), seed


@pytest.mark.parametrize("language", LANGUAGES)
def test_precise_merges_pages_with_the_same_figures(language: str) -> None:
    """Another order of sentences, some fewer words, or a source line with a date, change no figure."""
    for seed in range(PAIRS):
        made = LANGUAGES[language]
        text, _ = pair(made, "value", 4 * seed + 1)
        sentences = text.split(made.end)
        turned = made.end.join([*sentences[len(sentences) // 2 : -1], *sentences[: len(sentences) // 2], ""])
        page = prepared("one", text)
        for other in (turned, f"{text}\n2008-08-15 10:20"):
            found = compared("precise", page, prepared("other", other))
            assert found is not None
            assert found.score is not None


class Names:
    """Names pages by their sequence."""

    def name(self, sequence: int) -> tuple[str, str]:
        return f"page {sequence}", f"https://a.example/{sequence}"


def test_a_page_that_differs_in_a_figure_is_kept_with_a_reason() -> None:
    """The reason names the page that is otherwise the same; under `balanced` they are duplicates."""
    one, other = (prepared(str(at), text) for at, text in enumerate(pair(LANGUAGES["English"], "value", 2)))
    for profile, kind, reason in (
        ("precise", VerdictKind.UNIQUE, "differs in a figure from page 1"),
        ("balanced", VerdictKind.DUPLICATE, "nearly the same text"),
    ):
        decider = Decider(PROFILES[profile], "space", Names())
        decider.decide(1, one)
        verdict = decider.decide(2, other).verdict
        assert (verdict.kind, verdict.reason) == (kind, reason)
