"""The file of labels."""

import json
import multiprocessing
from pathlib import Path

import pytest

from dedup_service.core.errors import ConfigurationError, StateError
from dedup_service.runtime.labels import Label, LabelFile

ONE, TWO = Label("a", "b", "dup", kind="border", at="2024-05-01T10:00:00+00:00"), Label("a", "ü", "not")


def test_a_stored_label_is_in_the_file(tmp_path: Path) -> None:
    """While the file is still open, a reader finds complete lines."""
    path = tmp_path / "labels"
    with LabelFile(path) as file:
        for count, label in enumerate((ONE, TWO), 1):
            file.append(label)
            assert len(path.read_bytes().splitlines()) == count
        assert file.labels == [ONE, TWO]
    assert json.loads(path.read_text().splitlines()[1]) == {"a": "a", "b": "ü", "label": "not"}


def test_an_existing_file_is_continued(tmp_path: Path) -> None:
    """Its content stays byte for byte, including unknown keys and empty lines."""
    before = b'{"a": "x", "b": "y", "label": "grey", "who": "me"}\n\n'
    path = tmp_path / "labels"
    path.write_bytes(before)
    with LabelFile(path) as file:
        assert file.labels == [Label("x", "y", "grey")]
        file.append(ONE)
    assert path.read_bytes().startswith(before + b'{"a":"a"')


def test_the_last_label_can_be_taken_back(tmp_path: Path) -> None:
    """One after another until none is left; the file then ends where it did before."""
    path = tmp_path / "labels"
    with LabelFile(path) as file:
        file.append(ONE)
        size = path.stat().st_size
        file.append(TWO)
        assert file.take_back() == TWO
        assert path.stat().st_size == size
        assert file.take_back() == ONE
        assert path.read_bytes() == b""
        with pytest.raises(IndexError):
            file.take_back()


def test_an_incomplete_last_line_is_removed(tmp_path: Path) -> None:
    """A complete line without a line end gets one, so that the next label is on a separate line."""
    whole = b'{"a": "x", "b": "y", "label": "dup"}'
    for before, kept in ((whole + b'\n{"a": "x", "b', 1), (whole, 1)):
        path = tmp_path / "labels"
        path.write_bytes(before)
        with LabelFile(path) as file:
            assert len(file.labels) == kept
            file.append(ONE)
        assert [json.loads(line)["a"] for line in path.read_bytes().splitlines()] == ["x", "a"]


@pytest.mark.parametrize("line", [b"no json\n", b'{"a": "x", "b": "y"}\n', b'\xff\xfe\n{"a": 1}\n'])
def test_a_file_that_holds_something_else_is_refused_and_left_alone(tmp_path: Path, line: bytes) -> None:
    """The error names the line."""
    path = tmp_path / "labels"
    path.write_bytes(line)
    with pytest.raises(ConfigurationError, match="line 1: not a label"):
        LabelFile(path)
    assert path.read_bytes() == line


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    """Two people use two files."""
    context = multiprocessing.get_context("spawn")
    path, (ours, theirs) = tmp_path / "labels", context.Pipe()
    with LabelFile(path):
        other = context.Process(target=_send_whether_refused, args=(path, theirs))
        other.start()
        assert ours.recv() == "StateError"
        other.join()
    with LabelFile(path):
        pass


def _send_whether_refused(path: Path, pipe: "multiprocessing.connection.Connection") -> None:
    try:
        LabelFile(path)
    except StateError as error:
        pipe.send(type(error).__name__)
    else:
        pipe.send("opened")
