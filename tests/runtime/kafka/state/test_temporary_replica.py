"""A log with bases is decided again in a temporary folder, as the service decided it."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.log_records import LogRecord, PolicyRecord, first_offset
from dedup_service.core.rules.keep import Keep
from dedup_service.core.verdict import Verdict
from dedup_service.runtime.kafka.messages.log_record import numbered
from dedup_service.runtime.kafka.state import temporary_replica as module
from dedup_service.runtime.kafka.state.mounted_bases import BaseUnusableError
from dedup_service.runtime.kafka.state.temporary_replica import temporary_replica
from tests.runtime.embedded.prepared import SPACE_ID
from tests.runtime.embedded.test_bases import digests, stream

from .list_log import ListLog, first, page
from .test_mounted_bases import first_with, log_of, made, run


def log_with(records: Sequence[LogRecord]) -> ListLog:
    """A log as its readers number it."""
    begun = records[0]
    assert isinstance(begun, PolicyRecord)
    return ListLog(records, together=True, first=first_offset(begun.policy.based_on))


def decided_again(log: ListLog, given: dict[str, str]) -> list[Verdict]:
    """The verdicts of a reader of the whole log."""
    found: list[Verdict] = []
    with temporary_replica(log, given) as reading:
        for messages in log.read_to_end(max_records=7, end=log.end()):
            outcomes = reading.replica.apply_many(numbered(messages))  # type: ignore[arg-type]
            found += [outcome.verdict for outcome in outcomes if outcome is not None and outcome.verdict is not None]
            reading.step(len(messages))
    return found


@pytest.mark.parametrize("keep", [None, Keep(max_pages=25)])
@pytest.mark.parametrize("cuts", [(70,), (40, 70)])
def test_verdicts_are_those_that_the_service_gave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cuts: tuple[int, ...], keep: Keep | None
) -> None:
    """Of one base and of several, with expiry; nothing is left behind, in the bases or in the temporary folder."""
    records, given, start = stream(7, 150), dict[str, str](), 0
    for name, end in zip("ab", cuts, strict=False):
        given[name] = str(made(tmp_path / name, records[start:end], keep))
        start = end
    before, log = digests(tmp_path / "a"), log_of(first_with(given, tmp_path), records[start:])
    expected = run(tmp_path / "service", log, given).verdicts
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    monkeypatch.setattr(module, "SNAPSHOT_EVERY", 20)
    assert decided_again(log_with(log), given) == expected
    assert not list(scratch.iterdir())
    assert {None} < {verdict.duplicate_of_base for verdict in expected} <= {None, *given}
    assert digests(tmp_path / "a") == before


def test_bases_that_are_not_as_the_log_says_are_refused(tmp_path: Path) -> None:
    """One that is missing names what to give; so do another space, and one that the log has not."""
    records = stream(3, 40)
    given = {"corpus": str(made(tmp_path / "corpus", records[:30]))}
    log = log_with(log_of(first_with(given, tmp_path), records[30:]))
    with pytest.raises(BaseUnusableError, match="base corpus: not given; give it with --base corpus=FOLDER"):
        decided_again(log, {})
    with (
        pytest.raises(BaseUnusableError, match=f"made in space {SPACE_ID}, the pages would come in space another"),
        temporary_replica(log, given, space_id="another"),
    ):
        pass
    without = ListLog([first(), page(0, "http://a.example/1", 1)])
    with pytest.raises(ConfigurationError, match="begun without bases"):
        decided_again(without, given)
    assert len(decided_again(without, {})) == 1
    assert decided_again(ListLog([]), given) == []
