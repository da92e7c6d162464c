"""trafilatura's `bare_extraction` with its expressions evaluated by `expressions.ExpressionTable`.

trafilatura stays as it is, on disk and for others in the process: we load three of its modules a second time, beside
those in `sys.modules`, and replace the expressions in our instances. Of a version with other expressions or modules,
what is not understood keeps working, at trafilatura's speed. Log messages are silenced; `Extraction.problem` reports
what matters.
"""

import importlib.util
import logging
import sys
from collections.abc import Callable
from functools import lru_cache
from types import ModuleType
from typing import Any

from lxml import etree
from lxml.html import HtmlElement

from dedup_service.core.extraction.expressions import ExpressionTable

# Those that evaluate expressions, each after those that it imports functions from.
MODULES = ("baseline", "main_extractor", "core")

# Lists of expressions that trafilatura evaluates only for comments, or to favour precision: not with our settings.
UNUSED = frozenset({"COMMENTS_DISCARD_XPATH", "COMMENTS_XPATH", "PRECISION_DISCARD_XPATH", "REMOVE_COMMENTS_XPATH"})

READ = frozenset(
    {"alt", "alttext", "colspan", "data-preloaded", "data-src", "display", "encoding", "href", "lang", "rend"}
    | {"role", "rowspan", "src", "target", "title", "type"}
)
"""Attributes that trafilatura reads outside the expressions; also all that begin with `data-src`."""
READ_IN_CLASS = ("highlight", "hljs", "schema-faq-question", "w3-code")
"""What a class has that trafilatura reads outside the expressions."""
READ_IN_ID = ("data-preloaded",)

CHECKED = "2.3."
"""The release of trafilatura of which this was read; with another one all attributes stay, at a twentieth more time."""


def is_read(name: str, value: str) -> bool:
    """Whether trafilatura reads an attribute with this name and value outside the expressions."""
    words = READ_IN_CLASS if name == "class" else READ_IN_ID if name == "id" else ()
    return name in READ or name.startswith("data-src") or any(word in value for word in words)


def _may_be_read(name: str, value: str) -> bool:  # noqa: ARG001 - as `is_read`
    """Whether a trafilatura that we do not know may read an attribute: any."""
    return True


def bare_extraction(root: HtmlElement, options: Any) -> Any:
    """Return what trafilatura's function returns for a tree; attributes that it does not need are removed."""
    function, table = extractor()
    table.prepare(root)
    return function(root, options=options)


@lru_cache(maxsize=1)
def extractor() -> tuple[Callable[..., Any], ExpressionTable]:
    """Return trafilatura's function and its expressions.

    Loaded at the first page, since that takes 0.4 s, too long for `--help`.
    """
    import trafilatura

    logging.getLogger("trafilatura").setLevel(logging.CRITICAL + 1)
    is_checked = getattr(trafilatura, "__version__", "").startswith(CHECKED)
    table = ExpressionTable(is_read if is_checked else _may_be_read)
    loaded: dict[str, ModuleType] = {}
    for name in MODULES:
        module = _second_instance(f"trafilatura.{name}")
        if module is not None:
            for key, value in list(vars(module).items()):
                if key not in UNUSED:
                    setattr(module, key, _replaced(value, table, loaded))
            loaded[module.__name__] = module
    core = loaded.get("trafilatura.core", trafilatura)
    return getattr(core, "bare_extraction", trafilatura.bare_extraction), table


def _second_instance(name: str) -> ModuleType | None:
    """Return an instance of a loaded module, of our own; None if there is no module of this name."""
    spec = importlib.util.find_spec(name) if name in sys.modules else None
    if spec is None or spec.loader is None:
        return None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _replaced(value: Any, table: ExpressionTable, loaded: dict[str, ModuleType]) -> Any:
    """Return our counterpart of a value of a module: an expression, a list of them, or a function of our instances."""
    if isinstance(value, etree.XPath):
        return table.add(value)
    if isinstance(value, list) and any(isinstance(each, etree.XPath) for each in value):
        return [_replaced(each, table, loaded) for each in value]
    home = loaded.get(getattr(value, "__module__", None) or "")
    return value if home is None else getattr(home, value.__name__, value)
