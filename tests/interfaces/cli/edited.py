"""A small synthetic crawl of stories and edited copies, with a label for each pair."""

import random
from pathlib import Path

from tests.interfaces.cli.running import page, write_lines

SENTENCES = 20
FIRST, SECOND = "bcdfghjklmnprstvwz", "aeiou"


def story(seed: int) -> list[str]:
    """Return the sentences of a text; texts of different seeds share no words."""
    source = random.Random(seed)
    words = [
        "".join(map("".join, zip(source.choices(FIRST, k=3), source.choices(SECOND, k=3), strict=True)))
        for _ in range(60)
    ]
    return [" ".join(source.sample(words, 9)).capitalize() + "." for _ in range(SENTENCES)]


def edited(seed: int, changed: int) -> list[str]:
    """Return the same story with `changed` of its sentences replaced."""
    sentences, source = story(seed), random.Random(seed + 1000)
    for index, other in zip(source.sample(range(SENTENCES), changed), story(seed + 5000), strict=False):
        sentences[index] = other
    return sentences


def label_of(changed: int) -> str:
    """Return the label: a copy up to a fifth changed, another text from two fifths on, otherwise grey."""
    return "dup" if changed <= 4 else "not" if changed >= 8 else "grey"


def crawl(folder: Path, stories: int = 40) -> tuple[Path, Path]:
    """Write a page and an edited copy for each story, later ones edited more, and their labels."""
    pages, pairs = [], []
    for number in range(stories):
        changed = number * 16 // stories
        first, second = (
            page(2 * number, " ".join(story(number))),
            page(2 * number + 1, " ".join(edited(number, changed))),
        )
        pages += [first, second | {"url": f"https://copies{number % 7}.example/{number}"}]
        pairs.append({"a": first["id"], "b": second["id"], "label": label_of(changed), "kind": "edited"})
    return write_lines(folder / "pages.jsonl", pages), write_lines(folder / "pairs.jsonl", pairs)
