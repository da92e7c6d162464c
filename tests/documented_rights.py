"""The rights of each role: the `kafka-acls.sh` lines of SECURITY.md, and the table of docs/service.md."""

import re
import shlex
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path

from dedup_service.runtime.kafka.topics import Topics
from deploy.kafka.access_lists import Grant

_ROOT = Path(__file__).parents[1]
_LOOP = re.compile(r"for topic in (.+); do\n(.+)\ndone")
_KINDS = {"topic": "TOPIC", "group": "GROUP", "transactional id": "TRANSACTIONAL_ID"}


def granted_to(role: str, prefix: str = "") -> set[Grant]:
    """Return what the lines of SECURITY.md allow a principal. prefix: put in front of our names, as the text says."""
    commands = (_ROOT / "SECURITY.md").read_text("utf-8").replace("\\\n", " ")
    commands = _LOOP.sub(lambda loop: "\n".join(loop[2].replace("$topic", name) for name in loop[1].split()), commands)
    return {grant for line in commands.splitlines() if f"User:{role} " in line for grant in _grants(line, prefix)}


def listed_for(*users: str) -> set[Grant]:
    """Return what the table of docs/service.md says in the rows whose first cell begins with one of `users`."""
    rows = re.findall(r"^\| (.+) \| (.+) \| (\*.+) \|$", (_ROOT / "docs/service.md").read_text("utf-8"), re.MULTILINE)
    return {
        Grant(kind, name, _constant(operation), "begin" in resource)
        for user, resource, operations in rows
        if user.replace("`", "").startswith(users)
        for kind, name in _resources(resource)
        for operation in re.findall(r"\*(\w+)\*", operations)
    }


def _grants(line: str, prefix: str) -> Iterator[Grant]:
    parser = ArgumentParser()
    parser.add_argument("--allow-principal")
    parser.add_argument("--operation", action="append")
    parser.add_argument("--resource-pattern-type")
    for option, kind in (("--topic", "TOPIC"), ("--group", "GROUP"), ("--transactional-id", "TRANSACTIONAL_ID")):
        parser.add_argument(option, dest=kind)
    parser.add_argument("--cluster", dest="CLUSTER", action="store_const", const="kafka-cluster")
    found = vars(parser.parse_args(shlex.split(line)[1:]))
    for kind in (*_KINDS.values(), "CLUSTER"):
        if (name := found[kind]) is not None:
            whole = name if kind == "CLUSTER" or name.startswith("__") else prefix + name
            for operation in found["operation"]:
                yield Grant(kind, whole, _constant(operation), found["resource_pattern_type"] == "prefixed")


def _resources(text: str) -> Iterator[tuple[str, str]]:
    named = re.findall(r"`([^`]+)`", text)
    if text == "the cluster":
        yield "CLUSTER", "kafka-cluster"
    elif text.startswith("all topics of the set"):
        yield from (("TOPIC", name) for name in Topics().all if name not in named)
    else:
        kind = next(kind for word, kind in _KINDS.items() if text.startswith(word))
        yield from ((kind, name) for name in named)


def _constant(operation: str) -> str:
    """Return `DescribeConfigs` as `DESCRIBE_CONFIGS`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
