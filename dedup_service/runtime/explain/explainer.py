"""Assemble an explanation (`why`): the page, the page that its verdict names, its neighbours, and corrections.

The pair itself is computed by `core.explain.pair`; `interfaces.explain_json` makes JSON of the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import or_

from dedup_service._native import Entry, HostText
from dedup_service.core.decision.entry_store import HeldEntries
from dedup_service.core.decision.overrides import Overrides
from dedup_service.core.explain.channels import FeatureComparison, compare_features
from dedup_service.core.explain.host_sentences import Spans, common_of_pair, host_spans
from dedup_service.core.explain.nearest import nearest
from dedup_service.core.explain.pair import SAME_TEXT, PairView, explain_pair
from dedup_service.core.fingerprinter import Feature, Fingerprinter
from dedup_service.core.page import Page
from dedup_service.core.verdict import Verdict, VerdictKind
from dedup_service.runtime.embedded.corrections import Correction
from dedup_service.runtime.explain.page_source import KnownPage, PageSource, RuleInForce, UnknownPageError

NEIGHBOURS = 5
FEATURES = 20
ALL_FEATURES = 100_000
MAX_SPANNED = 20_000
"""Characters of a text in which host text is looked for; no more are shown."""

BY_PERSON = "a person called it a duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairExplained:
    """The page and another one. text: of the other page. features: None for a neighbour, or if a text is not kept.

    host_spans: where the beginnings of both texts are a host's own, as places (start, stop).
    """

    other: KnownPage
    kept: bool
    view: PairView
    text: str | None = None
    features: FeatureComparison | None = None
    host_spans: tuple[Spans, Spans] = ((), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """Why a page has its verdict. decided_by: see docs/why.md. text: of the page. notes: what is missing, and why.

    visit: the visit of which an unchanged page repeats the text, with its verdict; None for other pages.
    """

    page: KnownPage
    kept: bool
    text: str | None
    decided_by: str
    visit: KnownPage | None
    match: PairExplained | None
    neighbours: tuple[PairExplained, ...]
    space_id: str
    in_force: RuleInForce
    corrections: tuple[Correction, ...]
    notes: tuple[str, ...]


@dataclass(slots=True)
class _Context:
    """What one explanation is made from."""

    page: KnownPage
    held: HeldEntries
    in_force: RuleInForce
    overrides: Overrides
    corrections: list[Correction]
    host_text: HostText
    notes: list[str] = field(default_factory=list)


class Explainer:
    """Explains pages of `source`.

    fingerprinter: returns a fingerprinter, to weigh features. given: returns a page that the caller supplies again, or
    None.
    """

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
        """Return why the page at a URL or sequence has its verdict; UnknownPageError if it is not in the log.

        compare_with: a page to compare with, instead of the one that the verdict names. neighbours: number of nearest
        pages; None is NEIGHBOURS, or 0 for a duplicate.
        """
        context = self._context_of(self._source.judged(self._known(reference)))
        page = context.page
        named = None if page.original is None else self._source.find(page.original)
        other = named if compare_with is None else self._known(compare_with)
        if other is None and page.original is not None:
            context.notes.append("the page that the verdict names is no longer in the log")
        text = self._text(page, context)
        match = None if other is None else self._match(page, text, other, context)
        count = neighbours if neighbours is not None else NEIGHBOURS * (not _is(page.verdict, VerdictKind.DUPLICATE))
        excluded = {page.sequence, *(() if match is None else (match.other.sequence,))}
        return Explanation(
            page=page,
            kept=context.held.has(page.sequence),
            text=text,
            decided_by=_decided_by(page.verdict, context.in_force),
            visit=None if named is None or not _is(page.verdict, VerdictKind.UNCHANGED) else self._source.judged(named),
            match=match,
            neighbours=tuple(self._neighbours(context, count, excluded)),
            space_id=self._source.space_id,
            in_force=context.in_force,
            corrections=tuple(_naming(context.corrections, page)),
            notes=tuple(context.notes),
        )

    def _known(self, reference: str | int) -> KnownPage:
        page = self._source.find(reference)
        if page is None:
            what = f"page {reference}" if isinstance(reference, int) else f"a page at {reference[:500]}"
            raise UnknownPageError(f"{what} is not in the log: check the address, and that this is its log")
        return page

    def _context_of(self, page: KnownPage) -> _Context:
        corrections = self._source.corrections()
        overrides = Overrides(correction.record for correction in corrections)
        host_text = self._source.host_text()
        context = _Context(page, self._source.held(), self._source.rule(page), overrides, corrections, host_text)
        if page.verdict is None:
            context.notes.append("its verdict is no longer kept: this is what the rule in force says")
        if context.in_force.since is None:
            context.notes.append("the rule was changed meanwhile; this is the rule in force now")
        if context.in_force.changed:
            context.notes.append("another rule is in force now; this is the rule that decided the page")
        return context

    def _text(self, page: KnownPage, context: _Context) -> str | None:
        given = self._given(page)
        if given is None:
            text = self._source.text(page)
            if text is None and page.entry.body_hash is not None:
                context.notes.append(f"the text of {page.url} is no longer kept: what is left of it is shown")
            return text
        if self._usable(context) and self._fingerprinter().prepare(given).body_hash != page.entry.body_hash:
            context.notes.append(f"the text given for {page.url} is not the one that was judged")
        return given.text

    def _match(self, page: KnownPage, text: str | None, other: KnownPage, context: _Context) -> PairExplained:
        other_text = self._text(other, context)
        features = None
        spans: tuple[Spans, Spans] = ((), ())
        if text is not None and other_text is not None:
            spans = _host_spans(context.host_text, (page, other), (text, other_text))
        if text is not None and other_text is not None and self._usable(context):
            ours, theirs = (self._features(side, words) for side, words in ((page, text), (other, other_text)))
            features = compare_features(ours, theirs, FEATURES)
        view = self._compared(other.entry, context)
        is_copy = page.original == other.sequence and _is(page.verdict, VerdictKind.DUPLICATE)
        if is_copy and any(view.host_letters) > view.matches:
            context.notes.append("the two do not match now: of their text, some became known as a host's own meanwhile")
        return PairExplained(
            other=other,
            kept=context.held.has(other.sequence),
            view=view,
            text=other_text,
            features=features,
            host_spans=spans,
        )

    def _compared(self, other: Entry, context: _Context) -> PairView:
        page = context.page.entry
        common = common_of_pair(context.host_text, page, other)
        return explain_pair(context.in_force.rule, page, other, overrides=context.overrides, common=common)

    def _features(self, page: KnownPage, text: str) -> list[Feature]:
        whole = Page(url=page.url, canonical_url=page.canonical_url, id=page.id, title=page.title, text=text)
        return self._fingerprinter().explain(whole, limit=ALL_FEATURES)

    def _usable(self, context: _Context) -> bool:
        """Whether features can be weighed here as they were in the log's space."""
        here = self._fingerprinter().space_id
        if here == self._source.space_id:
            return True
        note = f"features are of space {self._source.space_id}, here they would be of {here}: give its --space"
        if note not in context.notes:
            context.notes.append(note)
        return False

    def _neighbours(self, context: _Context, count: int, excluded: set[int]) -> list[PairExplained]:
        found: list[PairExplained] = []
        if not count:
            return found
        for entry in nearest(context.held, context.page.entry, count + len(excluded), context.host_text):
            other = None if entry.sequence in excluded else self._source.find(entry.sequence)
            if other is not None and len(found) < count:
                found.append(PairExplained(other=other, kept=True, view=self._compared(entry, context)))
        return found


def _host_spans(host_text: HostText, pages: tuple[KnownPage, KnownPage], texts: tuple[str, str]) -> tuple[Spans, Spans]:
    """Return where the beginning of each text is text of either page's host."""
    one, other = (page.entry.host for page in pages)

    def are_common(values: Sequence[int]) -> list[bool]:
        return list(map(or_, host_text.common(one, values), host_text.common(other, values)))

    left, right = (host_spans(text[:MAX_SPANNED], are_common) for text in texts)
    return left, right


def _is(verdict: Verdict | None, kind: VerdictKind) -> bool:
    return verdict is not None and verdict.kind is kind


def _decided_by(verdict: Verdict | None, in_force: RuleInForce) -> str:
    if verdict is None:
        return "unknown"
    if verdict.kind in {VerdictKind.UNCHANGED, VerdictKind.UPDATED}:
        return "address"
    if verdict.kind is VerdictKind.UNDECIDED:
        return "unjudged" if verdict.guard is None else "guard"
    if verdict.kind is VerdictKind.UNIQUE:
        return "nothing"
    by_rule = "row" if in_force.rule.verified else "distance"
    return {BY_PERSON: "person", SAME_TEXT: "text"}.get(verdict.reason or "", by_rule)


def _naming(corrections: list[Correction], page: KnownPage) -> list[Correction]:
    """Return the corrections in force that name the page."""
    return [
        correction
        for correction in corrections
        if correction.in_force and page.canonical_url in {correction.record.url, correction.record.original}
    ]
