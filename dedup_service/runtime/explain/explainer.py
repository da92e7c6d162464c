"""Put an explanation together: the page, the one that its verdict names, its neighbours, and what people said."""

from collections.abc import Callable
from dataclasses import dataclass, field

from dedup_service.core.decision.entry_arrays import HeldEntries
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.explain.channels import FeatureComparison, compare_features
from dedup_service.core.explain.nearest import nearest
from dedup_service.core.explain.pair import PairView, explain_pair
from dedup_service.core.fingerprinter import Feature, Fingerprinter
from dedup_service.core.page import Page
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.explain.page_source import KnownPage, PageSource, RuleInForce, UnknownPageError

__all__ = ["NEIGHBOURS", "Explainer", "Explanation", "PairExplained"]

NEIGHBOURS = 5
FEATURES = 20
ALL_FEATURES = 100_000

NAMED = frozenset({VerdictKind.DUPLICATE, VerdictKind.UNCHANGED, VerdictKind.UPDATED})
BY_PERSON = "a person called it a duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairExplained:
    """The page and another. text: of the other. features: None where a text is gone, or of a neighbour."""

    other: KnownPage
    kept: bool
    view: PairView
    text: str | None = None
    features: FeatureComparison | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a page has its verdict. decided_by: see docs/why.md. text: of the page. notes: what is missing, and why."""

    page: KnownPage
    kept: bool
    text: str | None
    decided_by: str
    match: PairExplained | None
    neighbours: tuple[PairExplained, ...]
    space_id: str
    in_force: RuleInForce
    corrections: tuple[Correction, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Asked:
    """What one explanation is made of."""

    page: KnownPage
    held: HeldEntries
    in_force: RuleInForce
    overrides: Overrides
    corrections: list[Correction]
    notes: list[str] = field(default_factory=list)


class Explainer:
    """Asks `source`. fingerprinter: makes one, which weighs features. given: finds a page that was given again."""

    def __init__(
        self,
        source: PageSource,
        fingerprinter: Callable[[], Fingerprinter],
        given: Callable[[KnownPage], Page | None] = lambda _page: None,
    ) -> None:
        self._source = source
        self._fingerprinter = fingerprinter
        self._given = given

    def explain(
        self, reference: str | int, *, compare_with: str | int | None = None, neighbours: int | None = None
    ) -> Explanation:
        """Return why the page at a URL, or a sequence, has its verdict; UnknownPageError where it is not known.

        original: another page to compare with, in place of the one that the verdict names. neighbours: how many nearest
        pages; None gives NEIGHBOURS of a page that was not called a duplicate.
        """
        asked = self._asked(self._source.judged(self._known(reference)))
        page = asked.page
        other = (
            self._known(compare_with)
            if compare_with is not None
            else None
            if page.original is None
            else self._source.find(page.original)
        )
        if compare_with is None and other is None and page.original is not None:
            asked.notes.append("the page that the verdict names is in the log no longer")
        text = self._text(page, asked)
        match = None if other is None else self._match(page, text, other, asked)
        count = neighbours if neighbours is not None else NEIGHBOURS * (not _is_duplicate(page.verdict))
        apart = {page.sequence, *(() if match is None else (match.other.sequence,))}
        return Explanation(
            page=page,
            kept=asked.held.has(page.sequence),
            text=text,
            decided_by=_decided_by(page.verdict, asked.in_force),
            match=match,
            neighbours=tuple(self._neighbours(asked, count, apart)),
            space_id=self._source.space_id,
            in_force=asked.in_force,
            corrections=tuple(_naming(asked.corrections, page)),
            notes=tuple(asked.notes),
        )

    def _known(self, reference: str | int) -> KnownPage:
        page = self._source.find(reference)
        if page is None:
            what = f"page {reference}" if isinstance(reference, int) else f"a page at {reference[:500]}"
            raise UnknownPageError(f"{what} is not in the log: look at the address, and whether this is its log")
        return page

    def _asked(self, page: KnownPage) -> _Asked:
        corrections = self._source.corrections()
        overrides = Overrides(correction.record for correction in corrections)
        asked = _Asked(page, self._source.held(), self._source.rule(page), overrides, corrections)
        if page.verdict is None:
            asked.notes.append("its verdict is kept no longer: what follows is what the rule in force says")
        if asked.in_force.since is None:
            asked.notes.append("the rule was changed on the way; this is the one in force now")
        if asked.in_force.changed:
            asked.notes.append("another rule is in force now; this is the one that decided the page")
        return asked

    def _text(self, page: KnownPage, asked: _Asked) -> str | None:
        given = self._given(page)
        if given is None:
            text = self._source.text(page)
            if text is None and page.entry.body_hash is not None:
                asked.notes.append(f"the text of {page.url} is kept no longer: what is left of it is shown")
            return text
        if self._usable(asked) and self._fingerprinter().prepare(given).body_hash != page.entry.body_hash:
            asked.notes.append(f"the text given for {page.url} is not the one that was judged")
        return given.text

    def _match(self, page: KnownPage, text: str | None, other: KnownPage, asked: _Asked) -> PairExplained:
        other_text = self._text(other, asked)
        features = None
        if text is not None and other_text is not None and self._usable(asked):
            ours, theirs = (self._features(at, words) for at, words in ((page, text), (other, other_text)))
            features = compare_features(ours, theirs, FEATURES)
        return PairExplained(
            other=other,
            kept=asked.held.has(other.sequence),
            view=explain_pair(asked.in_force.rule, page.entry, other.entry, overrides=asked.overrides),
            text=other_text,
            features=features,
        )

    def _features(self, page: KnownPage, text: str) -> list[Feature]:
        whole = Page(url=page.url, canonical_url=page.canonical_url, id=page.id, title=page.title, text=text)
        return self._fingerprinter().explain(whole, limit=ALL_FEATURES)

    def _usable(self, asked: _Asked) -> bool:
        """Whether features can be weighed here as they were."""
        made = self._fingerprinter().space_id
        if made == self._source.space_id:
            return True
        note = (
            f"features are of space {self._source.space_id}, here they would be of {made}: give its --scheme, --idf …"
        )
        if note not in asked.notes:
            asked.notes.append(note)
        return False

    def _neighbours(self, asked: _Asked, count: int, apart: set[int]) -> list[PairExplained]:
        found: list[PairExplained] = []
        if not count:
            return found
        for entry in nearest(asked.held, asked.page.entry, count + len(apart)):
            other = None if entry.sequence in apart else self._source.find(entry.sequence)
            if other is not None and len(found) < count:
                view = explain_pair(asked.in_force.rule, asked.page.entry, entry, overrides=asked.overrides)
                found.append(PairExplained(other=other, kept=True, view=view))
        return found


def _is_duplicate(verdict: Verdict | None) -> bool:
    return verdict is not None and verdict.kind is VerdictKind.DUPLICATE


def _decided_by(verdict: Verdict | None, in_force: RuleInForce) -> str:
    if verdict is None:
        return "unknown"
    if verdict.kind in {VerdictKind.UNCHANGED, VerdictKind.UPDATED}:
        return "address"
    if verdict.kind is VerdictKind.UNDECIDED:
        return "unjudged" if verdict.guard is None else "guard"
    if verdict.kind is VerdictKind.UNIQUE:
        return "nothing"
    if verdict.reason == BY_PERSON:
        return "person"
    return "row" if in_force.rule.verified else "distance"


def _naming(corrections: list[Correction], page: KnownPage) -> list[Correction]:
    """Return the corrections in force that name the page."""
    return [at for at in corrections if at.in_force and page.canonical_url in {at.record.url, at.record.original}]
