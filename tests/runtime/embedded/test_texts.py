"""The texts beside the log: compressed, within their budget, oldest out first."""

from pathlib import Path

from dedup_service.runtime.embedded.state import State, StateSettings

from .prepared import SPACE, SPACE_ID, prepared


def opened(folder: Path, budget: int) -> State:
    """The state in `folder` with `budget` bytes for texts."""
    return State(folder, SPACE_ID, SPACE, None, StateSettings(text_budget_bytes=budget))


def test_a_text_comes_back_as_it_was(tmp_path: Path) -> None:
    """Any string survives, lone surrogates included; a page without a record of text has none."""
    state = opened(tmp_path, 10_000)
    text = "新闻 and a lone \udc80 surrogate"
    state.decide([(prepared("u1", 1, text=text), None)])
    assert (state.text_at(1), state.text_at(2)) == (text, None)
    state.close()


def test_the_oldest_texts_go_first_and_the_budget_holds(tmp_path: Path) -> None:
    """Above the budget the earliest texts are dropped, no more than needed; the sum is right after reopening too."""
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
    """One page that could never fit does not drive the others out."""
    state = opened(tmp_path, 400)
    huge = "".join(chr(0x4E00 + n * 7919 % 20_000) for n in range(2000))
    state.decide([(prepared("u1", 1, text="small"), None), (prepared("u2", 2, text=huge), None)])
    assert (state.text_at(1), state.text_at(2)) == ("small", None)
    state.close()
