"""What must come of a stream, told from the records alone: no fingerprint and no log is asked.

    complaints = contradictions(inputs, truths, kinds)

Within a partition records are in order; between partitions any order may have been decided in. So a story's first
visit is known only as one of all its visits, while a URL's own history is known exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from benchmarks.service.stream import Kind, RecordTruth
from dedup_service.core.log_records import Source

__all__ = ["REJECTED", "contradictions"]

REJECTED = "rejected"


def contradictions(truths: Mapping[Source, RecordTruth], verdicts: Mapping[Source, str]) -> list[str]:
    """Return a sentence for each fact that the verdicts contradict.

    truths: of every record that is in the input topic; verdicts: what was said of it, `rejected` for a dead letter.
    """
    groups: dict[tuple[Kind, str], list[tuple[Source, RecordTruth]]] = defaultdict(list)
    for source in sorted(truths):
        truth = truths[source]
        groups[truth.kind, truth.name].append((source, truth))
    found = []
    for (kind, name), records in groups.items():
        said = [verdicts.get(source, "nothing") for source, _ in records]
        problem = _problem(kind, [truth.body for _, truth in records], said)
        if problem:
            found.append(f"{kind} {name}: {problem}; records {[tuple_of(source) for source, _ in records]}")
    return found


def tuple_of(source: Source) -> str:
    """A source as people write it."""
    return f"{source.partition}/{source.offset}"


def _problem(kind: Kind, bodies: list[str], said: list[str]) -> str | None:
    if kind is Kind.STORY:
        counts = Counter(said)
        others = set(said) - {"unique", "duplicate", "unchanged"}
        if counts["unique"] != 1 or others:
            return f"one visit of {len(said)} is unique, any other repeats it; said: {dict(counts)}"
        return None
    expected = list(_expected(kind, bodies))
    return None if said == expected else f"expected {expected}, said {said}"


def _expected(kind: Kind, bodies: list[str]) -> Iterator[str]:
    if kind is Kind.POISON:
        yield from (REJECTED for _ in bodies)
    elif kind is Kind.EMPTY:
        yield from ("undecided" for _ in bodies)
    else:
        yield "undecided" if kind is Kind.SHORT else "unique"
        yield from ("unchanged" if before == after else "updated" for before, after in pairwise(bodies))
