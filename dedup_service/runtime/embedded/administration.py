"""An embedded state opened as it is, to add a person's record to it: whatever its space, it is not asked for.

Nothing is fingerprinted here, so neither tables nor dictionaries are read.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dedup_service.core.rules.rule import MatchRule
from dedup_service.runtime.embedded.folder import FolderKind, StateLock, refuse_other_kind
from dedup_service.runtime.embedded.state import State
from dedup_service.runtime.embedded.state_info import state_info

__all__ = ["embedded_state", "rule_of_state"]


@contextmanager
def embedded_state(folder: str | Path, rule: MatchRule | None = None) -> Iterator[State]:
    """Open the state in `folder` for as long as the block lasts; `rule`, where given, is in force from here on.

    StateError where the folder holds none, ForeignStateError where it is the Kafka service's, StateInUseError while
    another process has it.
    """
    refuse_other_kind(Path(folder), FolderKind.EMBEDDED)
    info = state_info(folder)
    lock = StateLock(Path(folder))
    lock.acquire()
    try:
        state = State(Path(folder), info.space_id, info.space, rule)
        try:
            yield state
        finally:
            state.close()
    finally:
        lock.release()


def rule_of_state(folder: str | Path) -> tuple[MatchRule, str]:
    """Return the rule in force in the state `folder` and its space; takes no lock."""
    refuse_other_kind(Path(folder), FolderKind.EMBEDDED)
    info = state_info(folder)
    return MatchRule.from_dict(info.rule), info.space_id
