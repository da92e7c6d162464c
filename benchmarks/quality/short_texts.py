"""Short texts: pairs that say the same are to be found, those that differ in a number, date, name or "not" kept.

Texts are headlines of the stream, each once, and headlines with the first sentence of their page: what a microblog has.
PAIRS pairs an operator and form, each compared in both orders in an empty index by the real decision.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.quality.operators import OPERATORS, Names, Operator, names_in
from benchmarks.quality.work import mapped
from benchmarks.quality.world import SEED, Workspace
from dedup_service.core.decision.decider import Decider
from dedup_service.core.evaluation.scoring import Share
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import DEFAULT_PROFILE, PROFILES
from dedup_service.core.rules.rule import MatchRule
from dedup_service.interfaces.cli.commands.pairs import Comparer, NoNames
from dedup_service.runtime.resources import build_fingerprinter

__all__ = ["FORMS", "PAIRS", "Found", "ShortPair", "ShortTextJob", "compute", "pairs_of", "run", "texts_of"]

PAIRS = 2000
FORMS = ("headline", "headline and sentence")
MIN, MAX_SENTENCE = 8, 80
_SENTENCE = re.compile("[^。！？!?\n]+[。！？!?]?")


@dataclass(frozen=True, slots=True)
class ShortPair:
    """Two short texts, and the operator that made the second of the first."""

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
class Found:
    """Of the pairs of an operator, the share called duplicates; harmless: whether that is right."""

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
    """Yield PAIRS pairs, of texts drawn in an order of `seed`; texts are used again where too few can be changed."""
    rng = random.Random(f"{seed} {operator.name} {form}")
    made = 0
    for _ in range(PAIRS):
        before = made
        for text in rng.sample(texts, len(texts)):
            pair = operator.apply(text, rng, names)
            if pair is not None:
                made += 1
                yield ShortPair(operator.name, form, *pair)
                if made == PAIRS:
                    return
        if made == before:
            return


def compute(world: Workspace) -> list[Found]:
    """Return the share called duplicates for each operator and form, of either half, by the default profile."""
    jobs = []
    for half in (0, 1):
        pages = world.corpora.plain(half)
        names = names_in([page.title for page in pages])
        for form in FORMS:
            texts = texts_of(pages, form)
            jobs += [
                ShortTextJob(operator.name, form, half, texts, names, PROFILES[DEFAULT_PROFILE])
                for operator in OPERATORS
            ]
    return [found for found, _ in mapped(run, jobs, "short texts", world.processes, chunk=1)]


def run(job: ShortTextJob) -> tuple[Found, list[ShortPair]]:
    """Return what came of a job, and the pairs that came out wrong.

    A pair counts as merged where it is called a duplicate in either order, as found where it is in both.
    """
    operator = next(operator for operator in OPERATORS if operator.name == job.operator)
    fingerprinter = build_fingerprinter()
    comparer = Comparer(Decider(job.rule, fingerprinter.space_id, NoNames()))
    hits, wrong, pairs = 0, [], list(pairs_of(job.texts, operator, job.form, job.names, SEED + job.half))
    for pair in pairs:
        one, other = (fingerprinter.prepare(_page(name, text)) for name, text in _named(pair))
        said = {comparer.compare(*order)["verdict"] == "duplicate" for order in ((one, other), (other, one))}
        flagged = said == {True} if operator.harmless else True in said
        hits += flagged
        wrong += [] if flagged == operator.harmless else [pair]
    return Found(job.operator, operator.harmless, job.form, job.half, Share(hits, len(pairs))), wrong


def _named(pair: ShortPair) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("one", pair.one), ("other", pair.other)


def _page(name: str, text: str) -> Page:
    url = f"https://short.example/{name}"
    return Page(url=url, canonical_url=url, id=name, text=text)
