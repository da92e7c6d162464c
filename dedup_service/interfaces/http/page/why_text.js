// The texts side by side, with the differences marked, and the words with the largest weights.
import { foreign, el, table } from "./dom.js";
import { count } from "./format.js";

const NAMES = { pos: "Part of speech" };

export function passages(pair, compareUrl) {
  if (!pair.passages) {
    return [el("p", {}, "The texts are not shown here. ", el("a", { href: compareUrl }, "Compare with this page only"), " to see them, if both are still kept.")];
  }
  const grid = el("div", { class: "sides", tabindex: "0", role: "region", "aria-label": "The two texts side by side" },
    el("h3", {}, "This page"), el("h3", {}, "Other page"));
  for (const passage of pair.passages) {
    for (const side of ["one", "other"]) {
      grid.append(el("p", { class: `passage ${side}${passage.alike ? "" : " differs"}`, dir: "auto" },
        passage[side].map(shownPiece)));
    }
  }
  const { one, other } = pair.host_letters;
  return [
    one || other ? el("p", { class: "note" }, el("span", { class: "host" }, "Grey"), ` is a host's own text, which does not count: about ${count(one)} letters of this page, ${count(other)} of the other.`) : null,
    grid, pair.cut ? el("p", { class: "note" }, "The texts are longer than the part that is compared here.") : null,
  ];
}

// Return a piece of a text: host text is grey, other differences are marked.
function shownPiece({ text, alike, host }) {
  if (host) return el("span", { class: "host" }, text);
  return alike ? text : el("mark", {}, text);
}

export function features(pair) {
  if (!pair.features) return [el("p", {}, "The words are not available: a text is no longer kept, or its space cannot be rebuilt here.")];
  const { shared, one, other } = pair.features;
  const names = factorsOf([...shared.flatMap((word) => [word.one, word.other]), ...[...one, ...other].map((word) => word.weight)]);
  const factorColumns = names.map((name) => [NAMES[name] ?? name[0].toUpperCase() + name.slice(1), "number"]);
  const both = [["Word", ""], ["Weight in this page", "number"], ["in the other", "number"], ["Count", "number"], ["IDF", "number"], ...factorColumns];
  const single = [["Word", ""], ["Weight", "number"], ["Count", "number"], ["IDF", "number"], ...factorColumns];
  const factors = (here, there = here) => names.map((name) => two(here.factors[name], there.factors[name]));
  const alone = (words) => words.map(({ word, weight }) =>
    [foreign(word), figure(weight.weight), figure(weight.count), figure(weight.idf), ...factors(weight)]);
  return [
    el("h3", {}, "In both"),
    table("Words of both pages", both, shared.map(({ word, one: here, other: there }) => [
      foreign(word), figure(here.weight), figure(there.weight), two(here.count, there.count), figure(here.idf), ...factors(here, there),
    ])),
    el("h3", {}, "Only in this page"),
    table("Words only in this page", single, alone(one)),
    el("h3", {}, "Only in the other page"),
    table("Words only in the other page", single, alone(other)),
  ];
}

// Return the names of all factors of these weights.
function factorsOf(weights) {
  return [...new Set(weights.flatMap((weight) => Object.keys(weight.factors)))];
}

const figure = (value) => (value === null || value === undefined ? "–" : String(Number(value.toPrecision(3))));
const two = (here, there) => (here === there ? figure(here) : `${figure(here)} / ${figure(there)}`);
