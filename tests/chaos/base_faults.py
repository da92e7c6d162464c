"""A base that the log of a round goes on from, and a page of it that is taken down while services decide.

Some pages of the stream are copies of pages of the base. All are duplicates, until their page is taken down: from then
on no verdict names it.
"""

import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from dedup_service.core.log_records import UnwrittenRecord
from dedup_service.core.page import Page, PreparedPage
from dedup_service.core.rules.layout import IndexLayout
from dedup_service.runtime.embedded.state import State, StateSettings
from dedup_service.runtime.kafka.messages.log_record import decode
from dedup_service.runtime.kafka.messages.page_batch import is_batch
from dedup_service.runtime.resources import build_fingerprinter
from tests.chaos.fault_targets import FaultTargets
from tests.chaos.page_faults import publish
from tests.chaos.reading import Tail
from tests.crawls.stream import Kind, RecordTruth, Sent
from tests.crawls.texts import Writer
from tests.hangs import HANG_S

BASE = "corpus"
PAGES, COPIES_SHARE = 40, 0.1


@dataclass(frozen=True, slots=True)
class RoundBase:
    """A state whose pages all are kept. pages: by sequence. taken_down: sequences of those that were, or may be."""

    folder: Path
    pages: Mapping[int, PreparedPage]
    taken_down: set[int] = field(default_factory=set)

    @classmethod
    def make(cls, folder: Path, rng: random.Random, layout: IndexLayout) -> Self:
        """Make a base in `folder`, which is created."""
        writer, fingerprinter = Writer(rng), build_fingerprinter()
        urls = [f"https://corpus.example/{number}" for number in range(PAGES)]
        pages = [Page(url=url, canonical_url=url, id=url[-2:], title="", text=writer.text(600)) for url in urls]
        prepared = list(fingerprinter.prepare_all(pages))
        folder.mkdir()
        space = fingerprinter.space.to_dict()
        with closing(State(folder, fingerprinter.space_id, space, None, StateSettings(layout))) as state:
            verdicts = state.decide([(page, None) for page in prepared])
        return cls(folder, {verdict.sequence: page for verdict, page in zip(verdicts, prepared, strict=True)})

    @property
    def given(self) -> str:
        """It, as --base names it."""
        return f"{BASE}={self.folder}"

    @property
    def taken_down_urls(self) -> set[str]:
        """The URLs of the pages in `taken_down`."""
        return {self.pages[sequence].page.url for sequence in self.taken_down}

    def copy(self, sequence: int, name: str) -> Sent:
        """Return a copy of a page, at a URL with `name`."""
        page = self.pages[sequence].page
        row = {"id": name, "url": f"https://copies.example/{name}", "title": "", "text": page.text}
        truth = RecordTruth(Kind.BASED, page.url, "")
        return Sent(row["url"].encode(), json.dumps(row).encode(), (), truth)

    def mixed(self, sent: Sequence[Sent], rng: random.Random) -> list[Sent]:
        """Return the records of a stream with copies of pages of the base among them."""
        mixed = list(sent)
        for number in range(int(len(sent) * COPIES_SHARE)):
            copy = self.copy(rng.choice(list(self.pages)), f"stream-{number}")
            mixed.insert(rng.randrange(len(mixed) + 1), copy)
        return mixed


def take_down_in_base(targets: FaultTargets, rng: random.Random) -> None:
    """Retract a page in the base of the log; in half of the cases a process that decides starts meanwhile.

    Copies of the page follow once the log says that it is gone, and one of a page that is still there.
    """
    base = targets.base
    assert base is not None
    sequence, other = rng.sample(sorted(base.pages.keys() - base.taken_down), 2)
    base.taken_down.add(sequence)
    url, name = base.pages[sequence].page.url, f"after-{sequence}"
    restarted = rng.choice([one for one in targets.fleet.services if "--base" in one.arguments])
    restarts = rng.random() < 0.5
    if restarts:
        restarted.kill()
        restarted.start()
    command = [sys.executable, "-m", "dedup_service.interfaces.cli", "retract", "--state", str(base.folder), url]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    starting = f" while {restarted.name} starts" if restarts else ""
    targets.log(f"taken down in the base{starting}: {done.returncode} {done.stdout.strip()} {done.stderr.strip()}")
    if done.returncode != 0:
        targets.complain(f"retract in the base ended with {done.returncode}: {done.stderr.strip()}")
    _await_loss(targets, sequence)
    copies = [base.copy(sequence, f"{name}-1"), base.copy(sequence, f"{name}-2"), base.copy(other, f"{name}-other")]
    publish(targets, copies)


def _await_loss(targets: FaultTargets, sequence: int) -> None:
    """Wait until the log says that the page at `sequence` is gone."""
    deadline = time.monotonic() + HANG_S
    with closing(Tail(targets.bootstrap, [targets.topics.fingerprints])) as tail:
        while time.monotonic() < deadline:
            values = [message.value or b"" for message in tail.poll()]
            records = [record for value in values if not is_batch(value) for record in decode(value)]
            if any(isinstance(record, UnwrittenRecord) and sequence in record.sequences for record in records):
                targets.log(f"the log has lost the page at {sequence} of the base")
                return
    targets.complain(f"the log still has the page at {sequence}, which was taken down in the base")
