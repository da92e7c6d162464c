"""Profiles: named rule tables, and the file in which a user writes one.

`balanced` is the default; `precise` is for pages that differ in figures (laws, prices, encyclopaedias);
`broad` is for news reposts; `simhash` is distance alone, as published. docs/quality.md has the precision and
recall of each. A profile belongs to the policy, not to the space: another profile needs no new fingerprints.

A file, in TOML:

    [candidates]
    body = 3                # radius of a channel, 0 to 7; if omitted, the channel is not probed
    words = 3
    keys = true             # pages that share one of their eight smallest min-hashes

    [[match]]               # any row suffices; the bounds are those of `core.rules.match_row`
    name = "nearly equal"
    jaccard = 0.85
    figures = 0.5

    [guards]                # as in `core.rules.guards`; 0 switches a bound off; the others default
    max_hosts = 2000

    [card]                  # as in `core.evidence.card`; what is left out is as in the built-in card
    "facts swapped" = {factor = 1.5}
"""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from dedup_service.core.errors import ConfigurationError
from dedup_service.core.evidence.card import BUILT_IN, Card, card_lines
from dedup_service.core.evidence.similarity import MAX_RADIUS, Combined
from dedup_service.core.rules.guards import Guards
from dedup_service.core.rules.match_row import LONG, QUANTITIES, UPPER_BOUNDS, MatchRow
from dedup_service.core.rules.rule import DistanceBound, MatchRule

DEFAULT_PROFILE = "balanced"

OWN_TITLE = 0.3
"""Share of title terms in common from which two pages of one host are not articles under titles of their own.

To two articles, extraction may have added the same comment thread or sidebar.
"""

NEAR = 0.25
"""Jaccard similarity from which two pages are compared: with less, no copy that people labelled had a score above 0."""

HALF = 0.5
"""The same in `precise`, and for two pages of one host under titles of their own: they may share a template alone."""

SERIES = 3.0
"""Score from which two pages that look like items of a series are one.

A bank's statements on one page of its site keep nine tenths of their words from meeting to meeting.
"""

SAME, MUCH = "nearly the same text", "much the same text"

BALANCED = (
    MatchRow(
        name=SAME, min_letters=LONG, jaccard=NEAR, score=-0.09, length_ratio=2.0, title_on_host=OWN_TITLE, series=0
    ),
    MatchRow(name=f"{SAME} under another title", min_letters=LONG, jaccard=HALF, score=0.5, length_ratio=2.0, series=0),
    MatchRow(name=f"{SAME}, of a series", min_letters=LONG, jaccard=NEAR, score=SERIES, length_ratio=2.0),
)
"""The score says what the two texts share and what differs; above 0, more such pairs are copies than not.

A little below, the stream of news finds more edited copies than it loses other pages.
"""

PRECISE = (
    MatchRow(
        name=f"{SAME}, no figure changed",
        min_letters=LONG,
        jaccard=HALF,
        score=0.5,
        length_ratio=2.0,
        figures=0.5,
        series=0,
    ),
)

BROAD = (
    MatchRow(
        name=MUCH, min_letters=LONG, jaccard=NEAR, score=-1.0, length_ratio=2.5, title_on_host=OWN_TITLE, series=0
    ),
    MatchRow(name=f"{MUCH} under another title", min_letters=LONG, jaccard=HALF, score=0.0, length_ratio=2.5, series=0),
    MatchRow(name=f"{MUCH}, of a series", min_letters=LONG, jaccard=NEAR, score=SERIES - 1.5, length_ratio=2.5),
)

CHANNEL_RULES = {
    "words": MatchRule((DistanceBound(words=3),), guards=Guards()),
    "body": MatchRule((DistanceBound(body=7),), guards=Guards()),
    "both": MatchRule((DistanceBound(body=7), DistanceBound(words=6, body=16)), guards=Guards()),
}
"""Channels → the rule of distance alone in these channels; no candidate is verified."""

PROFILES = {
    "balanced": MatchRule((DistanceBound(words=3),), keys=True, verified=BALANCED, guards=Guards()),
    "precise": MatchRule((DistanceBound(words=3),), keys=True, verified=PRECISE, guards=Guards()),
    "broad": MatchRule((DistanceBound(words=3),), keys=True, verified=BROAD, guards=Guards()),
    "simhash": CHANNEL_RULES["both"],
}
"""Profile name → rule, for the profiles that ship; all have the default guards."""

RULES = PROFILES | CHANNEL_RULES
"""Name → rule, for all that can be named with or without a radius."""


def rule_for(
    channels: str | None = None, *, k: int | None = None, mu: float | None = None, profile: MatchRule | None = None
) -> MatchRule:
    """Return the rule that the arguments name; without arguments the default profile, `balanced`.

    `channels`, `mu` and `profile` are each a complete rule: give at most one.

    Args:
        channels: `words`, `body` or `both`: distance alone in these channels.
        k: Replaces every radius of the rule, in bits, 0 to 7. Not with `mu`.
        mu: Wang & Wang's combined similarity with this weight of the text, above 0 and up to 1, rounded to
            thousandths.
        profile: A rule, for instance from `PROFILES`.

    Returns:
        The rule.

    Raises:
        ConfigurationError: If two rules are named, or a value is out of range.

    Examples:
        >>> str(rule_for("both", k=3).conditions[0])
        'body ≤ 3'
        >>> [row.name for row in rule_for(profile=PROFILES["precise"]).verified]
        ['nearly the same text, no figure changed']
    """
    if sum(named is not None for named in (channels, mu, profile)) > 1 or (mu is not None and k is not None):
        raise ConfigurationError("channels, μ and a profile are each a complete rule: name one; μ has no k")
    if mu is not None:
        return MatchRule(combined=Combined(round(mu * 1000)), guards=Guards())
    if channels is not None and channels not in CHANNEL_RULES:
        raise ConfigurationError(f"channels must be one of {', '.join(CHANNEL_RULES)}, got {channels!r}")
    rule = profile or PROFILES[DEFAULT_PROFILE] if channels is None else CHANNEL_RULES[channels]
    return rule if k is None else rule.with_radius(k)


def rule_named(text: str) -> MatchRule | None:
    """Return the rule that `text` names, or None if it names none.

    Args:
        text: A profile or channels, also with a radius in bits, which replaces each radius of the rule: `precise`,
            `balanced:2`, `words`, `body:3`. `combined:.9` is Wang & Wang's combined similarity with this weight μ.

    Raises:
        ConfigurationError: The radius, or μ, is not a number in its range.

    Examples:
        >>> str(rule_named("both:3").conditions[0])
        'body ≤ 3'
        >>> rule_named("combined:.9") == rule_for(mu=0.9), rule_named("combine")
        (True, None)
    """
    name, colon, value = text.partition(":")
    if name == "combined":
        try:
            return rule_for(mu=float(value))
        except ValueError:
            raise ConfigurationError(f"{text!r} has no weight μ: write combined:.9") from None
    rule = RULES.get(name)
    if rule is None or not colon:
        return rule
    if not re.fullmatch("[0-7]", value):
        raise ConfigurationError(f"{text!r} has no radius of 0 to 7 bits: write {name}:3")
    return rule.with_radius(int(value))


_NAMED = RULES | {f"{name}:{k}": rule.with_radius(k) for name, rule in RULES.items() for k in range(MAX_RADIUS + 1)}


def rule_text(rule: MatchRule, than: MatchRule | None = None) -> str:
    """Return what people are told of a rule: the name that `rule_named` takes, or what it changes of the nearest name.

    Args:
        rule: The rule. One whose rows have other names than those of each profile is written out.
        than: A rule that is shown beside it. Of a rule that would be written out, only what differs from it is.

    Examples:
        >>> rule_text(rule_for(k=2))
        'balanced:2'
        >>> rule_text(parse_profile(profile_text(PROFILES["broad"]).replace("score = -1.0", "score = -0.6")))
        "own: broad, score ≥ -0.6 of 'much the same text'"
    """
    named = _NAMED
    if rule.combined is not None:
        mu = rule.combined.mu_thousandths / 1000
        named = {f"combined:{mu:g}": rule_for(mu=mu)}
    found = {name: changes for name, base in named.items() if (changes := _changes(base, rule)) is not None}
    if found:
        name = min(found, key=lambda name: len(found[name]))
        return f"own: {name}, {', '.join(found[name])}" if found[name] else name
    changes = None if than is None else _changes(than, rule)
    return f"the same but for {', '.join(changes)}" if changes else f"own: {rule}"


def _changes(before: MatchRule, after: MatchRule) -> list[str] | None:
    """Return what `after` has in place of what `before` has; None if their rows have other names."""
    if [row.name for row in before.verified] != [row.name for row in after.verified]:
        return None
    rows = list(zip(before.verified, after.verified, strict=True))
    changes = [] if before.candidates == after.candidates else [after.candidates]
    for bound in QUANTITIES:
        moved = [(row.name, getattr(old, bound), getattr(row, bound)) for old, row in rows]
        steps = {0 if old == new else None if None in (old, new) else round(new - old, 9) for _, old, new in moved}
        if len(steps) == 1 and None not in steps:
            changes += [f"{bound} {step:+g}" for step in steps if step]
        else:
            sign = "≤" if bound in UPPER_BOUNDS else "≥"
            bounds = [(name, "any" if new is None else f"{sign} {new:g}") for name, old, new in moved if old != new]
            changes += [f"{bound} {shown} of {name!r}" for name, shown in bounds]
    changes += ["the built-in card" if after.card == BUILT_IN else str(after.card)] * (before.card != after.card)
    if before.guards and not after.guards:
        return [*changes, "no guards"]
    earlier = before.guards.to_dict()
    return changes + [f"{name} {value}" for name, value in after.guards.to_dict().items() if value != earlier[name]]


def parse_profile(text: str) -> MatchRule:
    """Return the rule that the text of a profile file describes; ConfigurationError says what to correct."""
    try:
        values = tomllib.loads(text)
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        raise ConfigurationError(f"a profile must be a TOML file: {error}") from error
    _refuse_unknown("a profile", values, ("candidates", "match", "guards", "card"))
    candidates, guards, card = (values.get(name, {}) for name in ("candidates", "guards", "card"))
    rows = values.get("match", [])
    if not all(isinstance(table, dict) for table in (candidates, guards, card)) or not isinstance(rows, list):
        raise ConfigurationError("a profile has tables [candidates], [guards] and [card], and rows [[match]]")
    _refuse_unknown("[candidates]", candidates, ("body", "words", "keys"))
    radii = {name: candidates[name] for name in ("body", "words") if name in candidates}
    for name, radius in radii.items():
        if isinstance(radius, bool) or not isinstance(radius, int):
            raise ConfigurationError(f"{name} in [candidates] must be a number of bits, got {radius!r}")
    keys = candidates.get("keys", False)
    if not isinstance(keys, bool):
        raise ConfigurationError(f"keys in [candidates] must be true or false, got {keys!r}")
    rule = MatchRule(
        tuple(DistanceBound(**{name: radius}) for name, radius in radii.items()),
        keys=keys,
        verified=tuple(map(MatchRow.from_dict, rows)),
        guards=Guards.from_dict(Guards().to_dict() | guards),
        card=Card.from_dict(card),
    )
    if card and not rule.bounds_score:
        raise ConfigurationError("a card says what the score is made of: give a row a bound `score`")
    return rule


def profile_text(rule: MatchRule) -> str:
    """Return `rule` as the text of a profile file; `parse_profile` reads it back.

    ConfigurationError for a rule that a profile cannot express: one condition on both channels, or μ.
    """
    lines = ["[candidates]"]
    for near in rule.conditions:
        if near.words is not None and near.body is not None:
            raise ConfigurationError(f"a profile has one radius for each channel and cannot express {near}")
        lines.append(f"body = {near.body}" if near.words is None else f"words = {near.words}")
    if rule.combined is not None:
        raise ConfigurationError("a profile cannot express μ alone; give a row a bound `combined` instead")
    lines.append(f"keys = {str(rule.keys).lower()}")
    for row in rule.verified:
        lines += ["", "[[match]]", *(f"{name} = {_toml(value)}" for name, value in row.to_dict().items())]
    lines += ["", "[guards]", *(f"{name} = {value}" for name, value in rule.guards.to_dict().items())]
    lines += [] if rule.card == BUILT_IN else ["", "[card]", *card_lines(rule.card)]
    return "\n".join(lines) + "\n"


def _toml(value: object) -> str:
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)


def _refuse_unknown(what: str, values: Mapping[str, Any], known: tuple[str, ...]) -> None:
    if unknown := values.keys() - set(known):
        raise ConfigurationError(f"{what} has {', '.join(known)}, got {min(unknown)!r}")
