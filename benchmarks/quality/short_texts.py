"""Short texts: pairs with the same meaning, and pairs that differ in a number, date, name or "not".

Texts are the distinct headlines of the stream, and headlines with the first sentence of their page, as in a
microblog. PAIRS pairs for each operator and form; the decider compares each pair in both orders in an empty
index.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.quality.operators import OPERATORS, Names, Operator, names_in
from benchmarks.quality.work import mapped
from benchmarks.quality.workspace import SEED, Workspace
from dedup_service.core.evaluation.share import Share
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.commands.pairs import Comparer
from dedup_service.runtime.resources import build_fingerprinter

PAIRS = 2000
FORMS = ("headline", "headline and sentence")
MIN, MAX_SENTENCE = 8, 80
_SENTENCE = re.compile("[^。！？!?\n]+[。！？!?]?")


@dataclass(frozen=True, slots=True)
class ShortPair:
    """Two short texts, and the operator that made the second from the first."""

    operator: str
    form: str
    one: str
    other: str


@dataclass(frozen=True, slots=True)
class ShortTextJob:
    """One operator on the texts of one form and half, under a rule."""

    operator: str
    form: str
    half: int
    texts: list[str]
    names: Names
    rule: MatchRule


@dataclass(frozen=True, slots=True)
class ShortTextScore:
    """The share of an operator's pairs that are called duplicates. harmless: whether they should be."""

    operator: str
    harmless: bool
    form: str
    half: int
    share: Share


def texts_of(pages: list[Page], form: str) -> list[str]:
    """Return the distinct short texts of `pages` in `form`, in order."""
    found: dict[str, str] = {}
    for page in pages:
        title = page.title.strip()
        if len(title) < MIN or title in found:
            continue
        if form == FORMS[0]:
            found[title] = title
        elif sentence := _sentence(page.text, title):
            found[title] = f"{title}。{sentence}"
    return list(found.values())


def _sentence(text: str, title: str) -> str | None:
    for match in _SENTENCE.finditer(text):
        sentence = match.group().strip()
        if len(sentence) >= MIN and title[:MIN] not in sentence:
            return sentence[:MAX_SENTENCE]
    return None


def pairs_of(texts: list[str], operator: Operator, form: str, names: Names, seed: int) -> Iterator[ShortPair]:
    """Yield PAIRS pairs of texts in random order; texts are reused if too few of them can be changed."""
    rng = random.Random(f"{seed} {operator.name} {form}")
    count = 0
    for _ in range(PAIRS):
        before = count
        for text in rng.sample(texts, len(texts)):
            pair = operator.apply(text, rng, names)
            if pair is not None:
                count += 1
                yield ShortPair(operator.name, form, *pair)
                if count == PAIRS:
                    return
        if count == before:
            return


def compute(workspace: Workspace) -> list[ShortTextScore]:
    """Return the share called duplicates for each operator, form and half, with the default profile."""
    jobs = []
    for half in (0, 1):
        pages = workspace.corpora.plain(half)
        names = names_in([page.title for page in pages])
        for form in FORMS:
            texts = texts_of(pages, form)
            jobs += [
                ShortTextJob(operator.name, form, half, texts, names, PROFILES[DEFAULT_PROFILE])
                for operator in OPERATORS
            ]
    return [found for found, _ in mapped(run, jobs, "short texts", workspace.processes, chunk=1)]


def run(job: ShortTextJob) -> tuple[ShortTextScore, list[ShortPair]]:
    """Return the score of a job, and the pairs that were decided wrongly.

    A harmless pair counts as found if it is a duplicate in both orders, any other as merged if it is in
    either order.
    """
    operator = next(operator for operator in OPERATORS if operator.name == job.operator)
    fingerprinter = build_fingerprinter()
    comparer = Comparer(job.rule, fingerprinter.space_id)
    hits, wrong, pairs = 0, [], list(pairs_of(job.texts, operator, job.form, job.names, SEED + job.half))
    for pair in pairs:
        one, other = (fingerprinter.prepare(_page(name, text)) for name, text in _named(pair))
        answers = {comparer.compare(*order)["verdict"] == "duplicate" for order in ((one, other), (other, one))}
        flagged = answers == {True} if operator.harmless else True in answers
        hits += flagged
        wrong += [] if flagged == operator.harmless else [pair]
    return ShortTextScore(job.operator, operator.harmless, job.form, job.half, Share(hits, len(pairs))), wrong


def _named(pair: ShortPair) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("one", pair.one), ("other", pair.other)


def _page(name: str, text: str) -> Page:
    url = f"https://short.example/{name}"
    return Page(url=url, canonical_url=url, id=name, text=text)
