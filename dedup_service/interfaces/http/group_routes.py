"""The route `/api/group`: the pages of a page's group, and which of them stands for it.

The journal is read from the first page of the group on, so the answer comes from the worker of the explanations, one
after another. Strings of pages are truncated and cleaned, because they are displayed. docs/groups.md has the JSON.
"""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.groups.canonical import CanonicalPolicy, canonical_policy
from dedup_service.interfaces.explain_json import VERSION
from dedup_service.interfaces.http.explain_routes import BadRequestError, ExplainBackend, page_named, refused
from dedup_service.runtime.groups.group_values import group_values
from dedup_service.runtime.live_stats.display_safe import MAX_TITLE, MAX_URL, MAX_WORDS, cut, shown

MAX_SHOWN = 200
"""Members that a page shows."""

MAX_POLICY = 1000
NO_GROUPS = (
    "the dashboard of a service has no groups, since its log has no index of them: "
    "`twinsieve groups --bootstrap HOST:PORT` lists them all"
)


def group_routes(backend: ExplainBackend) -> list[BaseRoute]:
    """Return the route that answers from `backend`."""

    async def group(request: Request) -> Response:
        if not backend.has_groups:
            return refused(404, NO_GROUPS)
        try:
            page, policy = page_named(request), _policy(request)
        except (BadRequestError, ConfigurationError) as error:
            return refused(400, str(error))
        return await backend.worker.answer(lambda: _group(backend, page, policy))

    return [Route("/api/group", group)]


def _policy(request: Request) -> CanonicalPolicy:
    """Return the policy that is asked for: none that names a function, which a stranger could choose."""
    text = request.query_params.get("canonical", "").strip()
    if len(text) > MAX_POLICY:
        raise BadRequestError(f"canonical has at most {MAX_POLICY} characters")
    return canonical_policy(text or "earliest")


def _group(backend: ExplainBackend, page: str | int, policy: CanonicalPolicy) -> dict[str, Any]:
    group, has_more = backend.groups.find(page, policy, max_members=MAX_SHOWN)
    values = group_values(group, policy)
    canonical = values["canonical"]
    return {
        "version": VERSION,
        **values,
        "policy": shown(values["policy"]),
        "canonical": None if canonical is None else _cleaned(canonical),
        "members": [_cleaned(member) for member in values["members"]],
        "has_more": has_more,
    }


_LIMITS = {"id": MAX_WORDS, "url": MAX_URL, "title": MAX_TITLE, "reason": 2 * MAX_URL}


def _cleaned(values: dict[str, Any]) -> dict[str, Any]:
    texts = {name: shown(cut(values[name], limit)) for name, limit in _LIMITS.items() if values.get(name)}
    return values | texts
