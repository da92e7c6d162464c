"""Make the JSON Schema files in docs/schemas from the types that messages are read with.

python -m docs.json_schemas
"""

from pathlib import Path
from typing import Any

import msgspec

from dedup_service.core.size_limits import MAX_NAME_CHARS
from dedup_service.runtime.kafka.messages.verdict import VerdictLine
from dedup_service.runtime.readers.columns import PageJson

FOLDER = Path(__file__).with_name("schemas")
SCHEMAS = {
    "page": (PageJson, "A page, as in the topic `pages` and in a line of `twinsieve filter`. Other keys are yours."),
    "verdict": (VerdictLine, "A verdict, as in the topic `verdicts`. Keys may be added."),
}


def schema(name: str) -> str:
    """Return the text of the file of a schema."""
    kind, description = SCHEMAS[name]
    _, parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    whole = parts.pop(kind.__name__)
    whole["properties"]["url"] |= {"minLength": 1, "maxLength": MAX_NAME_CHARS}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": name, "description": description}
    others = {name: value for name, value in whole.items() if name not in head}
    kinds = {part: value | {"description": _first_line(value)} for part, value in sorted(parts.items())}
    text = msgspec.json.encode(head | others | ({"$defs": kinds} if kinds else {}))
    return msgspec.json.format(text, indent=2).decode() + "\n"


def _first_line(part: dict[str, Any]) -> str:
    return str(part["description"]).partition("\n")[0]


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for one in SCHEMAS:
        (FOLDER / f"{one}.json").write_text(schema(one), "utf-8")
