"""The public data sets in their published forms, made of our own texts, and the scores of known answers."""

import gzip
import json
import random
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from twinsieve_crawler.demo.articles import load_articles
from twinsieve_crawler.demo.edits import apply_edits

from benchmarks.public import (
    CorpusError,
    Document,
    Scores,
    adjusted_rand_index,
    document_scores,
    groups_of,
    main,
    pair_scores,
    read_core,
    read_news_copy,
)
from dedup_service.core.page import Page
from dedup_service.core.rules.profiles import PROFILES
from dedup_service.runtime.resources import build_fingerprinter

STORIES = {name: story for name, story in load_articles().items() if name.startswith("en-")}


def core_records() -> list[dict[str, Any]]:
    """Return each story, and of every second one a copy with other typography, as CORE has them."""
    records = []
    for number, story in enumerate(STORIES.values()):
        copies = [story, apply_edits(story, ("typography",))] if number % 2 else [story]
        ids = [str(1000 + 10 * number + copy) for copy in range(len(copies))]
        for name, one in zip(ids, copies, strict=True):
            records.append(
                {
                    "core_id": name,
                    "doi": f"10.0000/{name}",
                    "original_abstract": "\n\n".join(one.paragraphs),
                    "original_title": one.title,
                    "processed_title": one.title.lower(),
                    "processed_abstract": " ".join(one.paragraphs).lower(),
                    "cat": "near_exact_dup" if len(ids) > 1 else "non_dup",
                    "labelled_duplicates": [other for other in ids if other != name] or None,
                }
            )
    return records


def written(path: Path, records: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(record) + "\n" for record in records)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def news_folder(folder: Path) -> Path:
    """Write one set of NEWS-COPY: articles by id, and the pairs of each cluster of three copies."""
    articles, pairs = {}, []
    for number, story in enumerate(STORIES.values()):
        copies = [story, apply_edits(story, ("typography",)), apply_edits(story, ("adverts",))]
        ids = [f"paper-{copy}-{number}-jan-01-1960-p-1" for copy in range(3)]
        for name, one in zip(ids, copies, strict=True):
            articles[name] = {"byline": "By a reporter", "article": "\n".join(one.paragraphs), "headline": one.title}
        pairs += [list(pair) for pair in combinations(ids, 2)] if number % 2 else [ids[:2], ids[1:]]
    (folder / "inf_data.json").write_text(json.dumps(articles))
    (folder / "gt_edges.json").write_text(json.dumps(pairs))
    return folder


@pytest.mark.parametrize("name", ["core.json", "train.jsonl", "train.jsonl.gz"])
def test_core_is_read_line_by_line(tmp_path: Path, name: str) -> None:
    """Title and abstract are the page; null is no duplicate."""
    records = core_records()
    documents, labels = read_core(written(tmp_path / name, records))
    assert documents[0] == Document("1000", records[0]["original_title"], records[0]["original_abstract"])
    assert (labels["1000"], labels["1010"], labels["1011"]) == (frozenset(), {"1011"}, {"1010"})


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 2"),
        ("[]", "line 2"),
        ('{"core_id": "1"}', "line 2 has no original_title"),
        ('{"core_id": "1", "original_title": [], "original_abstract": ""}', "original_title should be text"),
        ('{"core_id": "1", "original_title": "", "original_abstract": "", "labelled_duplicates": "2"}', "list of ids"),
        ('{"core_id": "1000", "original_title": "", "original_abstract": ""}', "core_id 1000 is there twice"),
    ],
)
def test_a_file_of_another_form_is_refused_by_line(tmp_path: Path, line: str, message: str) -> None:
    """Nothing is scored of a file that is not understood."""
    path = tmp_path / "core.jsonl"
    path.write_text(json.dumps(core_records()[0]) + "\n" + line)
    with pytest.raises(CorpusError, match=message):
        read_core(path)


def test_news_copy_is_articles_and_pairs(tmp_path: Path) -> None:
    """The two files are told apart by their form, and duplicates of duplicates are in one cluster."""
    documents = read_news_copy(news_folder(tmp_path))
    assert documents[0].text.startswith("By a reporter ")
    assert len({document.cluster for document in documents}) == len(STORIES) == len(documents) / 3
    assert [document.cluster for document in documents[:6]] == [0, 0, 0, 1, 1, 1]


def test_news_copy_as_one_file_with_clusters(tmp_path: Path) -> None:
    """The copy of the set has a cluster beside each article."""
    rows = [{"article": "a", "cluster": 7}, {"article": "b", "cluster": 7}, {"article": "c", "cluster": 8}]
    written(tmp_path / "test.jsonl", rows)
    assert [document.cluster for document in read_news_copy(tmp_path)] == [7, 7, 8]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({}, "has 0 and 0"),
        ({"a.json": {}, "b.json": {}, "c.json": []}, "has 2 and 1"),
        ({"a.json": {"x": {"article": ""}}, "b.json": [["x", "y"]]}, "is no pair of ids"),
        ({"a.json": {"x": ""}, "b.json": []}, "an article should be an object"),
    ],
)
def test_a_folder_of_another_form_is_refused(tmp_path: Path, files: dict[str, Any], message: str) -> None:
    """The message says what the folder should have."""
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    with pytest.raises(CorpusError, match=message):
        read_news_copy(tmp_path)


def test_documents_are_scored_as_the_published_figures_are() -> None:
    """A group that lacks a labelled duplicate is wrong, one with a stranger is right, as in the paper."""
    labels = {"a": {"b"}, "b": {"a"}, "c": {"d"}, "d": {"c"}, "e": set(), "f": set(), "g": {"h", "i"}, "h": {"g", "i"}}
    labels = {name: frozenset(others) for name, others in labels.items()} | {"i": frozenset({"g", "h"})}
    groups = {"a": 1, "b": 1, "c": 2, "d": 3, "e": 1, "f": 4, "g": 5, "h": 5, "i": 6}
    assert document_scores(labels, groups) == Scores(right=2, wrong=3, missed=3)  # a b | e g h | c d i
    assert pair_scores(labels, groups) == Scores(right=2, wrong=2, missed=3)  # ab gh | ae be | cd gi hi
    assert (Scores(2, 3, 3).precision, Scores(2, 3, 3).recall, Scores(0, 0, 0).f1) == (0.4, 0.4, 0.0)


def test_the_index_counts_pairs() -> None:
    """It is that of all pairs of documents, compared one by one; equal partitions have 1."""
    rng = random.Random(5)
    for size in (2, 3, 40):
        one, other = ([rng.randrange(1 + size // 3) for _ in range(size)] for _ in range(2))
        alike = [(one[a] == one[b], other[a] == other[b]) for a, b in combinations(range(size), 2)]
        of_one, of_other = (sum(pair[side] for pair in alike) for side in (0, 1))
        expected, highest = of_one * of_other / len(alike), (of_one + of_other) / 2
        both = sum(all(pair) for pair in alike)
        brute = 1.0 if highest == expected else (both - expected) / (highest - expected)
        assert adjusted_rand_index(one, other) == pytest.approx(brute)
        assert adjusted_rand_index(one, [f"c{number}" for number in one]) == 1.0
    assert adjusted_rand_index([], []) == 1.0


def test_groups_are_kept_pages_with_their_copies() -> None:
    """A copy has the number of the page that it repeats."""
    pages = []
    for number, record in enumerate(core_records()):
        url = f"https://document.example/{number}"
        pages.append(Page(id=record["core_id"], url=url, canonical_url=url, text=record["original_abstract"]))
    groups = groups_of(build_fingerprinter(None).prepare_all(pages), PROFILES["balanced"])
    assert len(set(groups.values())) == len(STORIES)
    assert groups["1010"] == groups["1011"] == 1


def test_figures_stand_beside_the_published_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Every profile finds nearly all copies of the made files; what was published is in the same table."""
    folder = tmp_path / "news"
    folder.mkdir()
    core = written(tmp_path / "core.jsonl", core_records())
    main(["--core", str(core), "--news-copy", str(news_folder(folder))])
    lines = capsys.readouterr().out.splitlines()
    rows = [[cell.strip() for cell in line.strip("│┃").split("│")] for line in lines if line.startswith("│")]
    ours = [row[1:] for row in rows if row[0] in PROFILES]
    assert len(ours) == 2 * len(PROFILES)
    assert all(0.95 < float(cell) <= 1 for row in ours for cell in row)
    assert ["MinHash, published", "0.959", "0.942", "0.950", "", "", ""] in rows
    assert ["neural, published", ".83 to .937"] in rows


@pytest.mark.parametrize("arguments", [[], ["--core", "missing.jsonl"], ["--news-copy", "missing"]])
def test_wrong_usage_ends_with_a_message(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """There is no traceback, and the exit code is that of a wrong command line."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert (arguments[-1] if arguments else "--core FILE") in capsys.readouterr().err
