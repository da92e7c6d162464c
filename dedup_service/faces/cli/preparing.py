"""The pages of an input, prepared in their order and without their text, with a bar on a terminal."""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future

from dedup_service.core.fingerprint import PreparedPage
from dedup_service.faces.cli.errors_file import BadRecords
from dedup_service.faces.cli.progress import progress
from dedup_service.faces.cli.stream import Batch, batches
from dedup_service.runtime.preparation import Answer, BadRecord, Preparer
from dedup_service.runtime.readers import Record, open_source

__all__ = ["each_prepared"]


def each_prepared(name: str, preparer: Preparer, bad: BadRecords) -> Iterator[tuple[Record, PreparedPage]]:
    """Yield each record of the input `name` with its page; bad records are reported and left out."""
    with open_source(name) as source, progress(source.name, source.size_bytes) as advance:
        under_way: deque[tuple[Batch, Future[list[Answer]]]] = deque()
        for batch in batches(source.records):
            under_way.append((batch, preparer.submit(batch.records)))
            while under_way and (batch.last_for_now or len(under_way) > preparer.depth):
                done, answers = under_way.popleft()
                yield from _good(done, answers.result(), bad)
                advance(len(done.records), sum(len(record.raw) for record in done.records))
        for done, answers in under_way:
            yield from _good(done, answers.result(), bad)


def _good(batch: Batch, answers: list[Answer], bad: BadRecords) -> Iterator[tuple[Record, PreparedPage]]:
    for record, answer in zip(batch.records, answers, strict=True):
        if isinstance(answer, BadRecord):
            bad.report([(record, answer.problem)])
        else:
            yield record, answer
