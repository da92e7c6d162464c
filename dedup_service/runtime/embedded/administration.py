"""Open an embedded state in its own space, to add a record of an operator to it.

Nothing is fingerprinted here, so no tables or dictionaries are read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dedup_service.core.rules.keep import Keep
from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.embedded.folder import FolderKind, StateLock, refuse_other_kind
from dedup_service.runtime.embedded.state import State
from dedup_service.runtime.embedded.state_info import state_info
from dedup_service.runtime.store.stored_entries import Report


@contextmanager
def embedded_state(folder: str | Path, rule: MatchRule | None = None, keep: Keep | None = None) -> Iterator[State]:
    """Yield the open state in `folder`. rule, keep: recorded and in force from here on; None keeps those of the state.

    StateError if the folder has no state, ForeignStateError if it belongs to the Kafka service, StateInUseError while
    another process has it open.
    """
    refuse_other_kind(Path(folder), FolderKind.EMBEDDED)
    info = state_info(folder)
    lock = StateLock(Path(folder))
    lock.acquire()
    try:
        state = State(Path(folder), info.space_id, info.space, rule, keep=keep)
        try:
            yield state
        finally:
            state.close()
    finally:
        lock.release()


def compact_state(folder: str | Path, report: Report) -> None:
    """Give back disk space of the state in `folder`; see `State.compact`. Raises as `embedded_state`."""
    with embedded_state(folder) as state:
        state.compact(report)


def policy_of_state(folder: str | Path) -> tuple[MatchRule, Keep, str]:
    """Return the rule and the bounds in force in the state `folder`, and its space id. Takes no lock."""
    refuse_other_kind(Path(folder), FolderKind.EMBEDDED)
    info = state_info(folder)
    return MatchRule.from_dict(info.rule), Keep.from_dict(info.keep), info.space_id
