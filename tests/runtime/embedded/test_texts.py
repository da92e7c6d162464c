"""The stored main texts: compressed, within their budget, the oldest dropped first."""

from pathlib import Path

from dedup_service.runtime.embedded.state import State, StateSettings

from .prepared import SPACE, SPACE_ID, prepared


def opened(folder: Path, budget: int) -> State:
    """The state in `folder` with `budget` bytes for texts."""
    return State(folder, SPACE_ID, SPACE, None, StateSettings(text_budget_bytes=budget))


def test_a_text_reads_back(tmp_path: Path) -> None:
    """Any string is unchanged, including lone surrogates; an empty text is not stored."""
    state = opened(tmp_path, 10_000)
    text = "新闻 and a lone \udc80 surrogate"
    state.decide([(prepared("u1", 1, text=text), None)])
    assert (state.text_at(1), state.text_at(2)) == (text, None)
    state.close()


def test_the_oldest_texts_are_dropped_above_the_budget(tmp_path: Path) -> None:
    """No more of them than needed; the stored size is still right after reopening."""
    state = opened(tmp_path, 400)
    for number in range(1, 30):
        state.decide([(prepared(f"u{number}", number, text=f"{number:064x}"), None)])
        assert state.journal.texts.size_bytes <= 400
    kept = [number for number in range(1, 30) if state.text_at(number) is not None]
    assert kept == list(range(kept[0], 30))
    assert state.journal.texts.size_bytes + 80 > 400
    size = state.journal.texts.size_bytes
    state.close()
    state = opened(tmp_path, 400)
    stored = state.journal.database.rows("SELECT sum(length(frame)) FROM text")[0][0]
    assert state.journal.texts.size_bytes == size == stored
    state.close()


def test_a_text_larger_than_the_budget_displaces_nothing(tmp_path: Path) -> None:
    """A text that can never fit does not drop the others."""
    state = opened(tmp_path, 400)
    huge = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(2000))
    state.decide([(prepared("u1", 1, text="small"), None), (prepared("u2", 2, text=huge), None)])
    assert (state.text_at(1), state.text_at(2)) == ("small", None)
    state.close()
