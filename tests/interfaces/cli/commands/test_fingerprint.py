"""`twinsieve fingerprint`: one line of JSON for each text."""

from pathlib import Path

from tests.interfaces.cli.running import Cli, article

GOLDEN = {
    "This is a test string for testing": 9227187964509734024,
    "This is a test string for testing, This is a test string for testing abcdef": 9227187964518122632,
    "This is a test string for testing als": 9227223148898608264,
    "the cat sat on the mat": 18067315166123372031,
    "北京 上海 香港 深圳 广州 台北": 2880328420145413347,
    "": 18446744073709551615,
}


def test_the_seed_program_s_values(cli: Cli) -> None:
    """--space seed-java gives the values of the original program."""
    ran = cli("fingerprint", "--space", "seed-java", *GOLDEN)
    assert [line["words"] for line in ran.lines] == list(GOLDEN.values())
    assert [list(line) for line in ran.lines] == [["space", "words", "body"]] * len(GOLDEN)


def test_a_text_without_features_has_no_fingerprint(cli: Cli) -> None:
    """It is null, not a number."""
    (line,) = cli("fingerprint", "…").lines
    assert (line["words"], line["body"]) == (None, None)
    assert line["space"].startswith("twinsieve-")


def test_a_file_is_one_text(cli: Cli, tmp_path: Path) -> None:
    """--file gives the same fingerprint as the text as an argument."""
    path = tmp_path / "text.txt"
    path.write_text(article(1))
    assert cli("fingerprint", "--file", path).out == cli("fingerprint", article(1)).out


def test_a_title_changes_words_and_not_body(cli: Cli) -> None:
    """The channel `body` does not use the title."""
    (plain,), (titled,) = (cli("fingerprint", article(1), *more).lines for more in ([], ["--title", "harbour school"]))
    assert plain["body"] == titled["body"]
    assert plain["words"] != titled["words"]


def test_explain_lists_the_heaviest_features_first(cli: Cli) -> None:
    """Each feature has its weight and the factors of it."""
    features = cli("fingerprint", "--explain", "--title", "harbour", article(1)).lines[0]["features"]
    weights = [feature["weight"] for feature in features]
    assert weights == sorted(weights, reverse=True)
    assert {"word", "weight", "count", "idf", "factors"} == set(features[0])


def test_wrong_usage(cli: Cli, tmp_path: Path) -> None:
    """No text, no such file, or a file that is not UTF-8."""
    path = tmp_path / "text.txt"
    path.write_bytes("新闻".encode("gb18030"))
    assert cli("fingerprint").code == 2
    assert cli("fingerprint", "--file", tmp_path / "gone").code == 2
    assert "not UTF-8" in cli("fingerprint", "--file", path).err
