"""The dictionary of the installed jieba, kept as a mapped file in the user's cache folder."""

import os
from pathlib import Path

import pytest

from dedup_service._native import Segmenter
from dedup_service.core.errors import ConfigurationError
from dedup_service.runtime.jieba_dictionary import cache_folder, jieba_folder

TEXT = "近重复网页的检测"
STATES = "BEMS"


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A small folder with files as jieba's."""
    folder = tmp_path / "jieba"
    (folder / "finalseg").mkdir(parents=True)
    (folder / "dict.txt").write_text("检测 900 v\n网页 500 n\n的 9000 u\n", encoding="utf-8")
    states = {"start": dict.fromkeys(STATES, -1.0)}
    states |= {name: {state: dict.fromkeys(STATES, -1.0) for state in STATES} for name in ("trans", "emit")}
    for name, values in states.items():
        (folder / f"finalseg/prob_{name}.py").write_text(f"P = {values!r}\n", encoding="utf-8")
    return folder


def cut(jieba: Path, cache: Path | None = None) -> list[str]:
    """The words of TEXT as a new process cuts them, with a user's word."""
    return Segmenter(jieba, cache, ["近重复网页"]).cut_chinese(TEXT)


def test_the_installed_dictionary_is_read() -> None:
    """Its words are words."""
    assert Segmenter(jieba_folder()).cut_chinese("中华人民共和国成立") == ["中华人民共和国", "成立"]


def test_a_file_is_made_once(copied: Path, tmp_path: Path) -> None:
    """A later process maps it, and cuts the same words."""
    words = cut(copied, tmp_path / "cache")
    assert words[0] == "近重复网页"
    (file,) = (tmp_path / "cache").iterdir()
    made = file.stat()
    assert cut(copied, tmp_path / "cache") == words
    assert file.stat() == made


@pytest.mark.parametrize("damage", [b"", b"rubbish", "half", "flipped"])
def test_a_damaged_file_is_made_again(copied: Path, tmp_path: Path, damage: bytes | str) -> None:
    """Nothing of it is used, and the file is good afterwards."""
    words = cut(copied, tmp_path / "cache")
    (path,) = (tmp_path / "cache").iterdir()
    good = path.read_bytes()
    flipped = good[:500] + bytes([good[500] ^ 1]) + good[501:]
    path.write_bytes({"half": good[: len(good) // 2], "flipped": flipped}.get(damage, damage))  # type: ignore[arg-type]
    assert cut(copied, tmp_path / "cache") == words
    assert path.read_bytes() == good


def test_what_is_no_file_is_replaced_or_left(copied: Path, tmp_path: Path) -> None:
    """A pipe in its place was waited for, for good; a folder stays."""
    words = cut(copied, tmp_path / "cache")
    (path,) = (tmp_path / "cache").iterdir()
    path.unlink()
    os.mkfifo(path)
    assert cut(copied, tmp_path / "cache") == words
    assert path.is_file()
    path.unlink()
    path.mkdir()
    assert cut(copied, tmp_path / "cache") == words
    assert path.is_dir()


def test_a_folder_that_cannot_be_written_is_no_obstacle(copied: Path, tmp_path: Path) -> None:
    """The dictionary is read at each start."""
    (tmp_path / "file").write_bytes(b"")
    assert cut(copied, tmp_path / "file" / "cache")[0] == cut(copied)[0] == "近重复网页"


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without an entry in the list of users, as in containers, got a traceback of platformdirs."""
    for name in ("TWINSIEVE_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31 - 5)
    assert cache_folder() is None
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _name: "~/.cache/twinsieve")  # of earlier releases
    assert cache_folder() is None


def test_another_dictionary_makes_another_file(copied: Path, tmp_path: Path) -> None:
    """Whatever the version of jieba says, what is cut is what its files say."""
    assert "检测" in cut(copied, tmp_path / "cache")
    (copied / "dict.txt").write_text("网页的检测 900 n\n", encoding="utf-8")
    assert "检测" not in cut(copied, tmp_path / "cache")


@pytest.mark.parametrize("content", [None, b"\xff = (", b"# nothing", b"a b c"])
@pytest.mark.parametrize("file", ["dict.txt", "finalseg/prob_emit.py"])
def test_a_file_that_cannot_be_read_is_named(copied: Path, file: str, content: bytes | None) -> None:
    """With what is wrong with it, rather than a traceback."""
    (copied / file).unlink()
    if content is not None:
        (copied / file).write_bytes(content)
    with pytest.raises(ConfigurationError, match=f"cannot read .*{file} of jieba: "):
        cut(copied)
