"""The dictionary of the installed jieba, kept as arrays in the user's cache folder."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.text.segmentation.chinese import ChineseSegmenter
from dedup_service.core.text.segmentation.jieba_model import STATES
from dedup_service.runtime import jieba_dictionary
from dedup_service.runtime.jieba_dictionary import chinese_segmenter

TEXT = "近重复网页的检测"
WORDS = {"近重复网页": "n"}
Make = Callable[[], ChineseSegmenter]


@pytest.fixture
def copied(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A small folder with the files of jieba, which is taken for the installed one."""
    folder = tmp_path / "jieba"
    (folder / "finalseg").mkdir(parents=True)
    (folder / "dict.txt").write_text("检测 900 v\n网页 500 n\n的 9000 u\n", encoding="utf-8")
    states = {"start": dict.fromkeys(STATES, -1.0)}
    states |= {name: {state: dict.fromkeys(STATES, -1.0) for state in STATES} for name in ("trans", "emit")}
    for name, values in states.items():
        (folder / f"finalseg/prob_{name}.py").write_text(f"P = {values!r}\n", encoding="utf-8")
    monkeypatch.setattr(jieba_dictionary, "jieba_folder", lambda: folder)
    return folder


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, copied: Path) -> Iterator[Make]:
    """A segmenter of these files as a new process makes it, with its cache in `tmp_path`."""
    monkeypatch.setenv("TWINSIEVE_CACHE_DIR", str(tmp_path / "cache"))

    def make() -> ChineseSegmenter:
        jieba_dictionary._model.cache_clear()
        return chinese_segmenter(WORDS)

    yield make
    jieba_dictionary._model.cache_clear()


def test_the_installed_dictionary_is_read() -> None:
    """Its words are words, and its parts of speech are theirs."""
    assert chinese_segmenter().tag("中华人民共和国成立") == [("中华人民共和国", "ns"), ("成立", "v")]


def test_arrays_are_made_once(fresh: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A later process reads them from a file, and cuts the same words."""
    expected = fresh().cut(TEXT)
    assert expected[0] == "近重复网页"
    assert len(list((tmp_path / "cache").iterdir())) == 1
    monkeypatch.setattr(jieba_dictionary, "_made", None)
    assert fresh().cut(TEXT) == expected


@pytest.mark.parametrize("damage", [b"", b"rubbish", "half", "flipped"])
def test_a_damaged_file_is_made_again(fresh: Make, tmp_path: Path, damage: bytes | str) -> None:
    """Nothing of it is used, and the file is good afterwards."""
    expected = fresh().cut(TEXT)
    (path,) = (tmp_path / "cache").iterdir()
    good = path.read_bytes()
    flipped = good[:500] + bytes([good[500] ^ 1]) + good[501:]
    path.write_bytes({"half": good[: len(good) // 2], "flipped": flipped}.get(damage, damage))  # type: ignore[arg-type]
    assert fresh().cut(TEXT) == expected
    assert path.read_bytes() == good


def test_without_a_home_nothing_is_kept(fresh: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A user without an entry in the list of users, as in containers, got a traceback of platformdirs."""
    for name in ("TWINSIEVE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)
    monkeypatch.chdir(tmp_path)
    assert fresh().cut(TEXT)[0] == "近重复网页"
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _name: "~/.cache/twinsieve")  # of earlier releases
    assert fresh().cut(TEXT)[0] == "近重复网页"
    assert [path.name for path in tmp_path.iterdir()] == ["jieba"]


def test_another_dictionary_has_other_arrays(fresh: Make, copied: Path) -> None:
    """Whatever the version of jieba says, what is cut is what its files say."""
    assert "量子鸽子" not in fresh().cut("量子鸽子")
    with (copied / "dict.txt").open("a", encoding="utf-8") as dictionary:
        dictionary.write("量子鸽子 900 n\n")
    assert fresh().cut("量子鸽子") == ["量子鸽子"]


@pytest.mark.parametrize("content", [None, b"\xff = (", b"# nothing", b"a b c"])
@pytest.mark.parametrize("file", ["dict.txt", "finalseg/prob_emit.py"])
def test_a_file_that_cannot_be_read_is_named(fresh: Make, copied: Path, file: str, content: bytes | None) -> None:
    """With what is wrong with it, rather than a traceback."""
    (copied / file).unlink()
    if content is not None:
        (copied / file).write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"cannot read .*{file} of jieba: "):
        fresh()
