"""The differences of two texts."""

import unicodedata

from hypothesis import example, given
from hypothesis import strategies as st

from dedup_service._native import fold
from dedup_service.interfaces.text_diff import MAX_UNITS, Passage, Piece, passages, unshared_numbers

TEXT = st.text(st.sampled_from("ab 1.。！？\n，”中文é"), max_size=60) | st.text(max_size=40)


def joined(found: list[Passage]) -> tuple[str, str]:
    """Return the text of each side."""
    return (
        "".join(piece.text for passage in found for piece in passage.left),
        "".join(piece.text for passage in found for piece in passage.right),
    )


def alike(pieces: tuple[Piece, ...]) -> str:
    """Return the text of the equal pieces, folded and without white space."""
    text = "".join(fold(character).strip() for piece in pieces if piece.alike for character in piece.text)
    return unicodedata.normalize("NFKC", text)


@given(TEXT, TEXT)
def test_pieces_joined_are_the_text(left: str, right: str) -> None:
    """On both sides, nothing is lost or added."""
    assert joined(passages(left, right)) == (left, right)


@given(TEXT, TEXT)
@example(" ", "\0")
@example("1 ", "\0")
def test_equal_pieces_are_on_both_sides(left: str, right: str) -> None:
    """They are in the same order; the sides of an equal passage are the same once folded."""
    for passage in passages(left, right):
        if passage.alike:
            assert fold(joined([passage])[0]).strip() == fold(joined([passage])[1]).strip()
        else:
            assert alike(passage.left) == alike(passage.right)


def test_only_a_changed_number_is_marked() -> None:
    """This holds in Chinese and in English; a decimal point does not end a sentence."""
    for left, right, marked in (
        ("中新网4月29日电。他说好。", "中新网4月30日电。他说好。", ("29", "30")),
        ("It rose 3.5 percent. Good.", "It rose 3.6 percent. Good.", ("3.5", "3.6")),
    ):
        first, second = passages(left, right)
        assert [piece.text for piece in first.left if not piece.alike] == [marked[0]]
        assert [piece.text for piece in first.right if not piece.alike] == [marked[1]]
        assert second.alike


def test_differences_that_fingerprints_ignore_are_not_marked() -> None:
    """Traditional characters, full width and capitals are ignored; a number among them is marked."""
    (passage,) = passages("臺北電臺報導，ＡＢＣ公司於29日開業。", "台北电台报导，abc公司于30日开业。")
    assert [piece.text for piece in passage.left if not piece.alike] == ["29"]
    assert [piece.text for piece in passage.right if not piece.alike] == ["30"]
    assert all(passage.alike for passage in passages("蘭州站開通了。Good.", "兰州站开通了。GOOD."))


def test_consecutive_differing_words_are_one_piece() -> None:
    """The space between them is part of the piece."""
    (passage,) = passages("The old grey harbour opened", "The new red harbour opened")
    assert [piece.text for piece in passage.left] == ["The ", "old grey", " harbour opened"]


def test_sentences_too_long_to_align_are_marked_completely() -> None:
    """This bounds the time."""
    left, right = " ".join(["word"] * MAX_UNITS) + " a", " ".join(["word"] * MAX_UNITS) + " b"
    (passage,) = passages(left, right)
    assert passage == Passage((Piece(left, alike=False),), (Piece(right, alike=False),), alike=False)


def test_unshared_numbers_are_counted() -> None:
    """A number that is twice on one side and once on the other is listed once."""
    assert unshared_numbers("5 of 5, 1,200 and 7.5%", "5, 1,300 and 7.5%") == (["5", "1,200"], ["1,300"])


@given(TEXT, TEXT, st.lists(st.integers(0, 60), unique=True), st.lists(st.integers(0, 60), unique=True))
def test_host_text_is_marked_where_it_is(left: str, right: str, ours: list[int], theirs: list[int]) -> None:
    """Every character of a span is in a marked piece, no other one is, and nothing else changes."""
    spans = [list(zip(*[iter(sorted(edges))] * 2, strict=False)) for edges in (ours, theirs)]
    found = passages(left, right, (spans[0], spans[1]))
    plain = passages(left, right)
    assert joined(found) == joined(plain)
    assert [passage.alike for passage in found] == [passage.alike for passage in plain]
    for side, places in (("left", spans[0]), ("right", spans[1])):
        pieces = [piece for passage in found for piece in getattr(passage, side)]
        before = [piece for passage in plain for piece in getattr(passage, side)]
        assert [p.alike for p in pieces for _ in p.text] == [p.alike for p in before for _ in p.text]
        expected = [any(start <= at < stop for start, stop in places) for at in range(sum(len(p.text) for p in pieces))]
        assert [piece.host for piece in pieces for _ in piece.text] == expected
        assert all(piece.text for piece in pieces)
