// What decided: every row of the rule table with its bounds, as asked and as found, and how the pair was found at all.
import { alien, el, table } from "./dom.js";

const SIGNS = { "at least": "≥", "at most": "≤" };
const DIGITS = 3;

export function ruleOf(pair) {
  const found = pair.found_by.length ? `Found by ${pair.found_by.join(", ")}.` : "No index brings the two together, so no row was asked.";
  const person = pair.judged ? `A person said ${pair.judged}; that stands above the rule. ` : "";
  const outcome = pair.matches ? `The rule calls them duplicates: ${pair.row}.` : `The rule does not: ${pair.why_not}.`;
  return [
    el("p", {}, person, alien(outcome)),
    el("p", { class: "note" }, found),
    ...pair.rows.map((row) => rowOf(row, row.name === pair.nearest_row)),
    table("Likeness of the two, from the sketches", [["Quantity", ""], ["Value", "number"]],
      Object.entries(pair.likeness).map(([name, value]) => [quantity(name), figure(value)])),
    ...differences(pair.numbers),
  ];
}

function rowOf(row, nearest) {
  const state = row.decides ? "decides" : row.holds ? "holds" : nearest ? "comes nearest" : "does not hold";
  const bounds = row.bounds.map((bound) => [
    quantity(bound.quantity), `${SIGNS[bound.asks] ?? bound.asks} ${figure(bound.bound)}`, figure(bound.value),
    el("span", { class: bound.holds ? "holds" : "fails" }, bound.holds ? "✓ holds" : "✗ fails"),
  ]);
  const shown = el("details", { id: `row-${row.name.replaceAll(/\W+/g, "-")}` },
    el("summary", {}, alien(row.name), `: ${state}`),
    table(`Bounds of ${row.name}`, [["Quantity", ""], ["Asked", ""], ["Found", "number"], ["", ""]], bounds));
  shown.open = row.decides || nearest;
  return shown;
}

const quantity = (name) => name.replaceAll("_", " ");

function figure(value) {
  if (value === null || value === undefined) return "–";
  return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(DIGITS)));
}

function differences(numbers) {
  if (!numbers || !(numbers.one.length || numbers.other.length)) return [];
  const list = (of) => alien(of.join(", ") || "–");
  return [table("Numbers that one text alone has", [["This page", ""], ["The other", ""]], [[list(numbers.one), list(numbers.other)]])];
}
