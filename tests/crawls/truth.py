"""Expected verdicts of a stream from its records alone, without fingerprints and without the log.

    complaints = contradictions(truths, verdicts)

Records of one partition are decided in order; the order between partitions is open. So any one visit of a
story may be the unique one, but the history of a single URL is known exactly.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise

from dedup_service.core.log_records import Source
from tests.crawls.stream import Kind, RecordTruth

REJECTED = "rejected"


def contradictions(truths: Mapping[Source, RecordTruth], verdicts: Mapping[Source, str]) -> list[str]:
    """Return a sentence for each story or URL whose verdicts contradict the truth.

    truths: of every record in the input topic; verdicts: by record, `rejected` for a dead letter.
    """
    groups: dict[tuple[Kind, str], list[tuple[Source, RecordTruth]]] = defaultdict(list)
    for source in sorted(truths):
        truth = truths[source]
        groups[truth.kind, truth.name].append((source, truth))
    found = []
    for (kind, name), records in groups.items():
        actual = [verdicts.get(source, "nothing") for source, _ in records]
        problem = _problem(kind, [truth.body for _, truth in records], actual)
        if problem:
            found.append(f"{kind} {name}: {problem}; records {[_partition_offset(source) for source, _ in records]}")
    return found


def _partition_offset(source: Source) -> str:
    return f"{source.partition}/{source.offset}"


def _problem(kind: Kind, bodies: list[str], actual: list[str]) -> str | None:
    if kind is Kind.STORY:
        counts = Counter(actual)
        others = set(actual) - {"unique", "duplicate", "unchanged"}
        if counts["unique"] != 1 or others:
            return f"expected one of {len(actual)} visits to be unique and the others to repeat it, got {dict(counts)}"
        return None
    expected = list(_expected(kind, bodies))
    return None if actual == expected else f"expected {expected}, got {actual}"


def _expected(kind: Kind, bodies: list[str]) -> Iterator[str]:
    if kind is Kind.POISON:
        yield from (REJECTED for _ in bodies)
    elif kind is Kind.BASED:
        yield from ("duplicate" for _ in bodies)
    elif kind is Kind.EMPTY:
        yield from ("undecided" for _ in bodies)
    else:
        yield "undecided" if kind is Kind.SHORT else "unique"
        yield from ("unchanged" if before == after else "updated" for before, after in pairwise(bodies))
