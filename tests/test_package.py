"""The public API: what `import dedup_service` provides."""

import inspect
import re
import subprocess
import sys
import types
import typing
from importlib import resources
from pathlib import Path

import pytest

import dedup_service
from docs.api import HIDDEN

API_PAGE = Path(__file__).parents[1] / "docs" / "api.md"
TYPES_AND_FUNCTIONS = [name for name in dedup_service.__all__ if callable(getattr(dedup_service, name))]


@pytest.mark.parametrize("name", dedup_service.__all__)
def test_every_public_name_can_be_imported(name: str) -> None:
    """Each name of `__all__` is an attribute of the package, under the name of its definition."""
    assert getattr(getattr(dedup_service, name), "__name__", name) == name
    assert name in dir(dedup_service)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The error quotes the name."""
    with pytest.raises(AttributeError, match="NearDuplicateSieve"):
        dedup_service.NearDuplicateSieve  # noqa: B018


@pytest.mark.parametrize("module", ["numpy", "lxml", "dedup_service._native", "dedup_service.core"])
def test_importing_the_package_loads_nothing_heavy(module: str) -> None:
    """Names are loaded on first use; listing them loads nothing either."""
    code = f"import sys, dedup_service; dir(dedup_service); print({module!r} in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_the_api_page_lists_every_public_name() -> None:
    """docs/api.md and `__all__` agree, without repetition; internal methods are not there."""
    page = API_PAGE.read_text(encoding="utf-8")
    listed = re.findall(r"^### (\w+)$", page, re.MULTILINE)
    assert sorted(listed) == sorted(dedup_service.__all__)
    assert not any(f"#### {name}" in page for name in HIDDEN)


def own_types(annotation: object) -> set[str]:
    """Return the names of the project's types in an annotation."""
    found = set().union(*map(own_types, typing.get_args(annotation)))
    if isinstance(annotation, type) and annotation.__module__.startswith("dedup_service"):
        found.add(annotation.__name__)
    return found


@pytest.mark.parametrize("name", TYPES_AND_FUNCTIONS)
def test_public_signatures_name_public_types_only(name: str) -> None:
    """Functions, and fields, methods and properties of classes, need no import from an inner module.

    The constructor of the filter is not public: `open` calls it.
    """
    public = getattr(dedup_service, name)
    named = own_types(tuple[tuple(typing.get_type_hints(public).values())])  # type: ignore[misc]
    for member_name, member in inspect.getmembers(public):
        function = member.fget if isinstance(member, property) else member
        is_public = not member_name.startswith("_") and f"{name}.{member_name}" not in HIDDEN
        if is_public and isinstance(function, types.FunctionType | types.MethodType):
            named |= own_types(tuple[tuple(typing.get_type_hints(function).values())])  # type: ignore[misc]
    assert named <= set(dedup_service.__all__)


@pytest.mark.parametrize("name", TYPES_AND_FUNCTIONS)
def test_every_public_name_is_documented(name: str) -> None:
    """Public names have docstrings, and so have their methods and properties."""
    public = getattr(dedup_service, name)
    assert inspect.getdoc(public)
    for member_name, member in vars(public).items():
        if not member_name.startswith("_") and isinstance(member, property | classmethod | types.FunctionType):
            assert inspect.getdoc(member), member_name


@pytest.mark.parametrize("package", ["twinsieve_crawler", "dedup_service"])
def test_type_checkers_of_users_read_the_types(package: str) -> None:
    """PEP 561: the classifier `Typing :: Typed` is true only with this file in the package."""
    assert (resources.files(package) / "py.typed").is_file()
