"""Adds pages of files to the log, or to `pages`, each once.

    backfill.open(stop)                   # takes the name over from any other process
    done = backfill.done(file)            # records of the file that are done
    backfill.append(items, stop)          # a batch: its pages and its progress, in one transaction
    backfill.close()

A page is identified by the backfill's key, the number of its file and its place there. That, its record of the log and
the progress (`progress`) are written together, so a batch is there as a whole or not at all, and whoever goes on after
any end of the process reads where. The transactional id is that of the backfill's name: of two processes that run one
backfill, the later one fences the earlier, which then stops (`BackfillTakenOverError`). After a transaction that may be
lost the process takes the id again, reads the progress, and writes what is not done.

`pages` instead of the log: with `all`, whose content a service has to have. Then the service prepares the pages, too.

One thread uses an instance.
Source: KIP-98; docs/adr/0033-backfill.md has the alternatives.
"""

import re
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.core.log_records import (
    BackfillRecord,
    LogRecord,
    PageRecord,
    PolicyRecord,
    Source,
    TimeRecord,
    backfill_topic,
    sequence_at,
)
from dedup_service.core.page import PreparedPage
from dedup_service.runtime.kafka.backfill.progress import BackfilledFile, BackfillProgress, BackfillRun
from dedup_service.runtime.kafka.client.config import Connection
from dedup_service.runtime.kafka.client.errors import BrokerError, TransactionLostError, UnreachableError
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.client.producers import Message
from dedup_service.runtime.kafka.client.retry import pause_after
from dedup_service.runtime.kafka.client.transactional_producer import TransactionalProducer
from dedup_service.runtime.kafka.control.operator_records import require_begun
from dedup_service.runtime.kafka.messages.headers import page_headers, page_key
from dedup_service.runtime.kafka.messages.log_head import read_head
from dedup_service.runtime.kafka.messages.log_record import log_messages
from dedup_service.runtime.kafka.topics import OutputMode, Topics, require_log
from dedup_service.runtime.readers.record import Mark

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")
_MINUTE_S = 60
_MAX_BYTES = 32 << 20
_MAX_FAILURES = 20
"""Transactions that are lost in a row before the run gives up: with their timeouts, some minutes."""


class BackfillTakenOverError(StateError):
    """Another process runs the backfill of this name now. Let it, or give another name."""


class FileChangedError(StateError):
    """A file has another record where the backfill has ended than it had then. Give another name for the new file."""


class BackfillOutputs(StrEnum):
    """What the service writes for pages of files.

    Attributes:
        NONE: Nothing: they are known from then on.
        VERDICTS: Their verdicts.
        ALL: What it writes for a page of the crawl: they are published to `pages`.
    """

    NONE = "none"
    VERDICTS = "verdicts"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class BackfillItem:
    """A record of a file.

    number: of the record, from 1. digest: of its identity. page: None for a bad record, which is only counted. value:
    what is published, if pages are. ends: the position behind it, None where reading cannot go on at one.
    """

    file: str
    number: int
    digest: str
    page: PreparedPage | None
    value: bytes | None = None
    ends: int | None = None


@dataclass(frozen=True, slots=True)
class Appended:
    """A batch that is there. pages: that this call has written. sequence: of the last in the log, None if none is."""

    pages: int
    sequence: int | None


class Backfill:
    """The backfill `name` of the set `topics`.

    space_id: of the pages; ConfigurationError from `open` if the log has another one.
    """

    def __init__(
        self,
        connection: Connection,
        topics: Topics,
        name: str,
        outputs: BackfillOutputs,
        space_id: str,
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ConfigurationError(
                f"--name {name!r} cannot name a backfill: use letters, digits, '.', '_' and '-', 100 at most"
            )
        self._connection, self._topics, self._name = connection, topics, name
        self._outputs, self._space_id = outputs, space_id
        self._progress = BackfillProgress(connection, topics, name)
        transactional_id = f"{topics.prefix}backfill.{name}"
        self._producer = TransactionalProducer(connection, transactional_id, max_bytes=_MAX_BYTES)
        self._run = BackfillRun("", outputs.value, uuid.uuid4().hex)
        self._minute = -1
        self._first = 0
        self.group = ""
        """The consumer group of the service, once it is open."""

    @property
    def files(self) -> Mapping[str, BackfilledFile]:
        """How far each file is, by name, over all runs."""
        return self._progress.files

    def open(self, stop: threading.Event) -> None:
        """Take the backfill over; try until it works or `stop` is set.

        Raises ConfigurationError for a log of another space, or other outputs than it was begun with; StateError for a
        log that no service has begun; NotAuthorisedError; UnreachableError.
        """
        require_log(self._connection, self._topics, OutputMode.VERDICTS)
        self._check(self._first_policy())
        while not stop.is_set():
            self._producer.open(stop)
            if stop.is_set():
                return
            self._progress.refresh()
            self._run = self._next_run()
            try:
                self._producer.commit([self._progress.run_message(self._run)], once=True)
            except TransactionLostError:
                continue
            return

    def done(self, file: str) -> int:
        """Return how many records of a file are done."""
        known = self._progress.files.get(file)
        return 0 if known is None else known.records

    def mark(self, file: str) -> Mark | None:
        """Return where the last record of a file that is done begins, None if that is not known."""
        known = self._progress.files.get(file)
        return None if known is None or known.begins is None else Mark(known.records - 1, known.begins)

    def check(self, file: str, digest: str | None) -> None:
        """Raise FileChangedError unless the last record of a file that is done has this digest. None: it is gone."""
        known = self._progress.files[file]
        if digest is None or known.last not in {"", digest}:
            raise FileChangedError(
                f"{file}: record {known.records}, with which the backfill {self._name!r} ended, is another one now, or "
                "none: the file has changed. Give another --name for the new file; pages that are known are then "
                "`unchanged`"
            )

    def append(self, items: Sequence[BackfillItem], stop: threading.Event) -> Appended | None:
        """Write a batch, whose records of a file follow those that are done.

        Tries again until it works, or `stop` is set: then None, and nothing may be appended any more. Raises
        BackfillTakenOverError, RecordTooLargeError, NotAuthorisedError; BrokerError after 20 failures.
        """
        failures = 0
        while True:
            try:
                if failures:
                    self._recover(stop)
                left = [item for item in items if item.number > self.done(item.file)]
                return self._commit(left) if left else Appended(0, None)
            except BrokerError as error:
                failures += 1
                if not error.retryable or failures >= _MAX_FAILURES:
                    raise
                if pause_after(failures, stop):
                    return None

    def close(self) -> None:
        """Close the connections."""
        self._producer.close()
        self._progress.close()

    def _first_policy(self) -> PolicyRecord:
        with closing(LogConsumer(self._connection, self._topics.fingerprints)) as log:
            require_begun(self._connection, self._topics, log)
            first, self._first = read_head(log).policy, log.first
        if first is None:
            raise StateError(f"{self._topics.fingerprints} has no policy: start a service, which begins the log")
        return first

    def _check(self, first: PolicyRecord) -> None:
        self.group = first.group or f"{self._topics.prefix}twinsieve"
        if first.policy.space_id != self._space_id:
            raise ConfigurationError(
                f"{self._topics.fingerprints} is of space {first.policy.space_id}, but these options make fingerprints "
                f"of {self._space_id}: give the --space of the service"
            )

    def _next_run(self) -> BackfillRun:
        """Return this run, as a part of the backfill that was begun before, if it was."""
        before = self._progress.run
        if before is None:
            reported = self._outputs is BackfillOutputs.VERDICTS
            return replace(self._run, topic=backfill_topic(self._name, uuid.uuid4().hex[:12], reported=reported))
        if before.outputs != self._outputs:
            raise ConfigurationError(
                f"the backfill {self._name!r} was begun with --outputs {before.outputs}: give that, or another --name, "
                "which begins every file again"
            )
        return replace(self._run, topic=before.topic)

    def _recover(self, stop: threading.Event) -> None:
        """Take the id again, and learn what is done; BackfillTakenOverError if another process runs the backfill."""
        self._producer.open(stop)
        if stop.is_set():
            raise UnreachableError("stopped while the brokers could not be reached")
        self._progress.refresh()
        run = self._progress.run
        if run is not None and run.run != self._run.run:
            raise BackfillTakenOverError(
                f"another process has taken the backfill {self._name!r} over and goes on with it: let it, or run one "
                "at a time; other inputs may be backfilled at the same time with a --name of their own"
            )

    def _commit(self, items: Sequence[BackfillItem]) -> Appended:
        files = self._files_after(items)
        pages = [item for item in items if item.page is not None]
        minute = int(time.time() // _MINUTE_S)
        if self._outputs is BackfillOutputs.ALL:
            written = [(self._published(item), 1) for item in pages]
        else:
            written = log_messages(self._topics.fingerprints, self._records(pages, files, minute))
        progress = [self._progress.file_message(self._run.topic, file) for file in files.values()]
        placed = self._producer.commit([*(message for message, _ in written), *progress], once=True)
        for file in files.values():
            self._progress.note(file)
        if not pages or self._outputs is BackfillOutputs.ALL:
            return Appended(len(pages), None)
        self._minute = max(minute, self._minute)
        last = len(written) - 1
        return Appended(len(pages), sequence_at(self._first + placed[last][1], written[last][1] - 1))

    def _files_after(self, items: Iterable[BackfillItem]) -> dict[str, BackfilledFile]:
        """Return how far each file of a batch is after it."""
        number, files = self._progress.next_number, dict[str, BackfilledFile]()
        for item in items:
            file = files.get(item.file) or self._progress.files.get(item.file)
            if file is None:
                file = BackfilledFile(name=item.file, number=number)
                number += 1
            is_page = item.page is not None
            before = file.ends if file.records else 0
            files[item.file] = replace(
                file,
                records=item.number,
                begins=before if file.records == item.number - 1 and item.ends is not None else None,
                ends=item.ends,
                last=item.digest,
                pages=file.pages + is_page,
                bad=file.bad + (not is_page),
            )
        return files

    def _records(
        self, items: Sequence[BackfillItem], files: Mapping[str, BackfilledFile], minute: int
    ) -> Iterator[LogRecord]:
        """Yield the records of the log for a batch with pages: what a new file is, the time, the pages."""
        topic = self._run.topic
        for file in files.values():
            known = self._progress.files.get(file.name)
            if file.pages and (known is None or not known.pages):
                yield BackfillRecord(Source(topic, file.number, 0), file.name)
        if items and minute > self._minute:
            yield TimeRecord(minute)
        for item in items:
            assert item.page is not None
            yield PageRecord(Source(topic, files[item.file].number, item.number - 1), item.page, self._space_id)

    def _published(self, item: BackfillItem) -> Message:
        assert item.page is not None
        event = f"{self._run.topic}/{item.file}/{item.number - 1}"
        headers = page_headers(self._topics.pages, event)
        return Message(self._topics.pages, item.value, page_key(item.page.page.canonical_url), headers)
