"""What `import dedup_service` offers."""

import subprocess
import sys

import pytest

import dedup_service


@pytest.mark.parametrize("name", dedup_service.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """Each name of `__all__` can be had from the package."""
    assert getattr(dedup_service, name).__name__ == name


def test_other_names_are_missing_as_usual() -> None:
    """A misspelt name is an AttributeError that says so."""
    with pytest.raises(AttributeError, match="NearDuplicateSieve"):
        dedup_service.NearDuplicateSieve  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    """The names are loaded when they are used."""
    code = "import sys, dedup_service; print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
