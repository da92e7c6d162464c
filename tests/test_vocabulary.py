"""One brand, one meaning a name, and documents that name the modules there are."""

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CODE = ("benchmarks", "crawler", "dedup_service", "deploy", "docs", "tests")
TEXTS = frozenset({".cfg", ".css", ".html", ".js", ".json", ".md", ".py", ".toml", ".yaml", ".yml"})
OLD_BRAND = re.compile("near" + r"dup(?!licate)", re.IGNORECASE)
DOCUMENTS = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [*(ROOT / "docs").rglob("*.md"), *(path for path in ROOT.glob("*.md") if path.stem != "SECURITY")]
)
MODULE = re.compile(r"`(?:dedup_service/)?((?:core|runtime|interfaces)/[\w/]+?)(?:\.py)?/?`")
MODULES = frozenset(
    path.relative_to(ROOT / "dedup_service").with_suffix("").as_posix()
    for path in (ROOT / "dedup_service").rglob("*.py")
    if not path.stem.startswith("__") and "native" not in path.parts
)


def texts() -> list[Path]:
    """Every text of the project: the folders of code and documents, and the files beside them."""
    files = [path for name in CODE for path in (ROOT / name).rglob("*") if path.suffix in TEXTS]
    return [*files, *(path for path in ROOT.iterdir() if path.suffix in TEXTS)]


def test_there_is_one_brand() -> None:
    """Nothing carries the name that the product had before; "near-duplicate" is a word, and class names may have it."""
    found = {path.relative_to(ROOT).as_posix() for path in texts() if OLD_BRAND.search(path.read_text("utf-8"))}

    assert not found


def test_a_class_name_means_one_thing() -> None:
    """No public class name is defined twice outside the tests."""
    places: defaultdict[str, list[str]] = defaultdict(list)
    for path in texts():
        if path.suffix == ".py" and not path.is_relative_to(ROOT / "tests"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(path.relative_to(ROOT).as_posix())

    assert {name: found for name, found in places.items() if len(found) > 1} == {}


@pytest.mark.parametrize("page", ["docs/architecture.md", "docs/glossary.md", "README.md"])
def test_documents_name_modules_that_exist(page: str) -> None:
    """A path below `dedup_service` in a document is a module or a folder of the code."""
    folders = {parent.as_posix() for module in MODULES for parent in Path(module).parents}
    named = set(MODULE.findall((ROOT / page).read_text("utf-8")))

    assert named <= MODULES | folders


def test_the_map_names_every_module() -> None:
    """docs/architecture.md has each module of `dedup_service` by its name."""
    named = set(re.findall(r"[\w/]+", (ROOT / "docs/architecture.md").read_text("utf-8")))
    words = {part for name in named for part in (name, name.rsplit("/", 1)[-1])}

    assert {module for module in MODULES if module.rsplit("/", 1)[-1] not in words} == set()


@pytest.mark.parametrize("page", DOCUMENTS)
def test_lines_are_narrow(page: str) -> None:
    """Lines of documents, rows of tables included, are under 120 characters; code and generated tables may be wider."""
    fenced, generated, wide = False, False, []
    for number, line in enumerate((ROOT / page).read_text("utf-8").splitlines(), 1):
        fenced ^= line.startswith("```")
        if line.startswith("<!--"):
            generated = page in {"docs/api.md", "docs/quality.md", "docs/settings.md"} and line != "<!-- end -->"
        elif len(line) >= 120 and not (fenced or generated or line.startswith("![")):
            wide.append(number)

    assert wide == []


def test_fences_are_what_the_site_knows() -> None:
    """A fence has a language and options; with a bare second word the site would show the text after it as code."""
    pages = [path for path in texts() if path.suffix == ".md"]
    fences = {line for path in pages for line in path.read_text("utf-8").splitlines() if line.startswith("```")}

    assert {fence for fence in fences if not re.fullmatch(r'```[\w-]*( \w+="[^"]*")*', fence)} == set()
