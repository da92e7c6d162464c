"""Finding and building Helm, with a fake Go instead of the machine's."""

from pathlib import Path

import pytest

from deploy.helm.build import VARIABLE, MissingHelmError, build, find

GO = """#!/bin/sh
echo run >> {path}/runs
while [ "$1" != -o ]; do shift; done
/bin/mkdir -p "${{2%/*}}"
: > "$2"
"""


@pytest.fixture
def path(tmp_path, monkeypatch) -> Path:
    """The only folder on PATH."""
    monkeypatch.delenv(VARIABLE, raising=False)
    folder = tmp_path / "path"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def executable(file: Path, text: str) -> Path:
    file.write_text(text)
    file.chmod(0o755)
    return file


def test_without_go_one_line_says_what_to_install(path, tmp_path):
    """It names the file with the version, and the variable for a Helm from elsewhere."""
    with pytest.raises(MissingHelmError, match=rf"go\.mod.*{VARIABLE}") as caught:
        build(tmp_path / "bin")
    assert "\n" not in str(caught.value)


def test_helm_is_built_once(path, tmp_path):
    """The second call finds what the first one built; without a build there is nothing to find."""
    executable(path / "go", GO.format(path=path))
    with pytest.raises(MissingHelmError, match=r"deploy\.helm\.build"):
        find(tmp_path / "bin")
    built = build(tmp_path / "bin")
    assert build(tmp_path / "bin") == find(tmp_path / "bin") == built
    assert (path / "runs").read_text() == "run\n"


def test_a_failed_build_leaves_nothing_to_find(path, tmp_path):
    """The error quotes what Go said; the next call tries again."""
    executable(path / "go", "#!/bin/sh\necho no such version >&2\nexit 1\n")
    with pytest.raises(MissingHelmError, match="no such version"):
        build(tmp_path / "bin")
    executable(path / "go", GO.format(path=path))
    assert build(tmp_path / "bin").is_file()


def test_the_environment_variable_has_precedence(path, tmp_path, monkeypatch):
    """Nothing is built, and a path that does not exist is an error."""
    mine = executable(tmp_path / "helm", "#!/bin/sh\n")
    monkeypatch.setenv(VARIABLE, str(mine))
    assert build(tmp_path / "bin") == mine
    mine.unlink()
    with pytest.raises(MissingHelmError, match="no program"):
        build(tmp_path / "bin")
