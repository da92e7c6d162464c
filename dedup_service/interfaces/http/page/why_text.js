// The texts side by side, with what differs marked; and the words that weigh most in the fingerprints.
import { alien, el, table } from "./dom.js";

const NAMES = { pos: "Part of speech" };

export function passages(pair, again) {
  if (!pair.passages) {
    return [el("p", {}, "The texts are not shown here. ", el("a", { href: again }, "Compare with this page alone"), ", where both are still there.")];
  }
  const grid = el("div", { class: "sides", tabindex: "0", role: "region", "aria-label": "The two texts side by side" },
    el("h3", {}, "This page"), el("h3", {}, "The other"));
  for (const passage of pair.passages) {
    for (const side of ["one", "other"]) {
      grid.append(el("p", { class: `passage ${side}${passage.alike ? "" : " differs"}`, dir: "auto" },
        passage[side].map((piece) => (piece.alike ? piece.text : el("mark", {}, piece.text)))));
    }
  }
  return [grid, pair.cut ? el("p", { class: "note" }, "The texts are longer than what is compared here.") : null];
}

export function features(pair) {
  if (!pair.features) return [el("p", {}, "The words cannot be had: a text is gone, or the space cannot be made here.")];
  const { shared, one, other } = pair.features;
  const names = factorsOf([...shared.flatMap((word) => [word.one, word.other]), ...[...one, ...other].map((word) => word.weight)]);
  const factorColumns = names.map((name) => [NAMES[name] ?? name[0].toUpperCase() + name.slice(1), "number"]);
  const both = [["Word", ""], ["Weight here", "number"], ["there", "number"], ["Times", "number"], ["Idf", "number"], ...factorColumns];
  const single = [["Word", ""], ["Weight", "number"], ["Times", "number"], ["Idf", "number"], ...factorColumns];
  const factors = (here, there = here) => names.map((name) => two(here.factors[name], there.factors[name]));
  const alone = (words) => words.map(({ word, weight }) =>
    [alien(word), figure(weight.weight), figure(weight.count), figure(weight.idf), ...factors(weight)]);
  return [
    el("h3", {}, "In both"),
    table("Words of both pages", both, shared.map(({ word, one: here, other: there }) => [
      alien(word), figure(here.weight), figure(there.weight), two(here.count, there.count), figure(here.idf), ...factors(here, there),
    ])),
    el("h3", {}, "In this page alone"),
    table("Words of this page alone", single, alone(one)),
    el("h3", {}, "In the other alone"),
    table("Words of the other page alone", single, alone(other)),
  ];
}

// Names of all factors that these weights were made of.
function factorsOf(weights) {
  return [...new Set(weights.flatMap((weight) => Object.keys(weight.factors)))];
}

const figure = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(3))));
const two = (here, there) => (here === there ? figure(here) : `${figure(here)} / ${figure(there)}`);
