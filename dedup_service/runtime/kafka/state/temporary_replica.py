"""A replica of a whole log, for a reader that begins with the first record and keeps nothing.

    with temporary_replica(log, {"corpus": "/srv/corpus"}) as reading:
        for messages in log.read_to_end():
            reading.replica.apply_many(numbered(messages))
            reading.step(len(messages))

Its entries are in memory. Those of a log with bases are in a temporary folder (TMPDIR) instead, since they begin with
links to the kept pages of the first base, as in every process that decides such a log (`mounted_bases`): so its
verdicts are those that the service gave. The folder has what the log keeps itself, and bases from addresses.
"""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from dedup_service.core.decision.replica import Replica
from dedup_service.runtime.kafka.client.log_consumer import LogConsumer
from dedup_service.runtime.kafka.messages.log_head import read_head
from dedup_service.runtime.kafka.state.deciding_store import SNAPSHOT_EVERY, UNUSABLE, DecidingStore
from dedup_service.runtime.kafka.state.local_state import PAGES_FOLDER
from dedup_service.runtime.kafka.state.mounted_bases import BASES_FOLDER, MountedBases, require_bases
from dedup_service.runtime.kafka.state.page_names import temporary_page_names
from dedup_service.runtime.kafka.state.pending_outcomes import PendingOutcomes

_STEP_RECORDS = 500


@dataclass(frozen=True, slots=True, eq=False)
class TemporaryReplica:
    """A replica before the first record of a log, made by `temporary_replica`. bases: of the log, None without any."""

    replica: Replica
    bases: MountedBases | None = None
    pages: DecidingStore | None = None

    def step(self, records: int) -> None:
        """Do what entries on the disk need from time to time; call it after so many records of the log.

        StoreFullError if the disk did not take something.
        """
        if self.pages is None:
            return
        self.pages.note_applied(records)
        for _ in range(0, records, _STEP_RECORDS):
            self.pages.step()
        if self.pages.due:  # nobody reads the snapshot, but the space of dead rows is given back with it
            self.pages.take_snapshot(self.replica, PendingOutcomes(), "")


@contextmanager
def temporary_replica(
    log: LogConsumer, given: Mapping[str, str], *, space_id: str | None = None
) -> Iterator[TemporaryReplica]:
    """Yield a replica before the first record of `log`, whose messages are numbered (`number_log`).

    given: where the bases of the log are, by name. space_id: of the pages that will be applied; None: that of the log.
    BaseUnusableError if a base is not as the log says; ConfigurationError for one that the log has not. Damage of a
    base that is found inside names it.
    """
    first = read_head(log).policy
    with ExitStack() as stack:
        names = stack.enter_context(temporary_page_names())
        if first is not None:
            require_bases(first.policy, given)
        if first is None or not first.policy.bases:
            yield TemporaryReplica(Replica(names))
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="twinsieve-")))
        space = space_id or first.policy.space_id
        bases = MountedBases.open(first.policy.bases, given, folder / BASES_FOLDER, space)
        stack.callback(bases.close)
        store = DecidingStore(folder / PAGES_FOLDER, SNAPSHOT_EVERY)
        pages = stack.enter_context(closing(store))
        pages.begin(None, bases=bases)
        replica = Replica(bases.names(names), entries=pages.entries, bases=bases.begun)
        try:
            yield TemporaryReplica(replica, bases, pages)
        except UNUSABLE as error:
            raise type(error)(
                f"{error}; the folder has links to the kept pages of the base {first.policy.bases[0].name}: if that is "
                "damaged, restore it from a copy, as it was"
            ) from error
