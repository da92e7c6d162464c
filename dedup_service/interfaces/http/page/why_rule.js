// What decided: every row of the rule table with its bounds and values, and which index found the pair.
import { bar, foreign, el, table } from "./dom.js";

const SIGNS = { "at least": "≥", "at most": "≤" };
const DIGITS = 3;
const POINTS_DIGITS = 2;

export function ruleOf(pair) {
  const found = pair.found_by.length ? `Found by ${pair.found_by.join(", ")}.` : "No index finds the pair, so no row was applied.";
  const person = pair.judged ? `A person decided: ${pair.judged}. This overrides the rule. ` : "";
  const outcome = pair.matches ? `The rule calls the pair duplicates: ${pair.row}.` : `The rule does not call the pair duplicates: ${pair.why_not}.`;
  return [
    el("p", {}, person, foreign(outcome)),
    el("p", { class: "note" }, found),
    ...pair.rows.map((row) => rowOf(row, row.name === pair.nearest_row)),
    ...scoreOf(pair.score),
    table("Similarity of the pair, from the evidence of its pages", [["Quantity", ""], ["Value", "number"]],
      Object.entries(pair.likeness).map(([name, value]) => [quantity(name), figure(value)])),
    ...numbersOf(pair.numbers),
  ];
}

function rowOf(row, nearest) {
  const state = row.decides ? "decides" : row.holds ? "holds" : nearest ? "comes closest" : "does not hold";
  const bounds = row.bounds.map((bound) => [
    quantity(bound.quantity), `${SIGNS[bound.asks] ?? bound.asks} ${figure(bound.bound)}`, figure(bound.value),
    el("span", { class: bound.holds ? "holds" : "fails" }, bound.holds ? "✓ holds" : "✗ fails"),
  ]);
  const shown = el("details", { id: `row-${row.name.replaceAll(/\W+/g, "-")}` },
    el("summary", {}, foreign(row.name), `: ${state}`),
    table(`Bounds of ${row.name}`, [["Quantity", ""], ["Bound", ""], ["Value", "number"], ["", ""]], bounds));
  shown.open = row.decides || nearest;
  return shown;
}

// The points of each quantity, largest first; null if no row bounds the score.
function scoreOf(score) {
  if (!score) return [];
  const largest = Math.max(...score.quantities.map(({ points }) => Math.abs(points))) || 1;
  const rows = score.quantities.map(({ name, value, points }) => [
    name, figure(value), signed(points), bar(Math.abs(points) / largest, points < 0 ? "against" : null),
  ]);
  rows.push(["every pair", "", signed(score.intercept), ""], [el("strong", {}, "sum"), "", el("strong", {}, signed(score.sum)), ""]);
  const sign = score.holds ? "≥" : "<";
  return [
    el("h3", {}, "Score of the pair"),
    el("p", { "data-figure": "score" }, `${signed(score.sum)} ${sign} ${signed(score.bound)}, the threshold of `, foreign(score.row),
      `. Probability that such pages are copies: ${score.probability.toFixed(POINTS_DIGITS)}.`),
    table("Points of each quantity of the score", [["Quantity", ""], ["Value", "number"], ["Points", "number"], ["", "bar"]], rows),
  ];
}

// 1.5 → "+1.50", -0.25 → "−0.25"
function signed(points) {
  return `${points < 0 ? "−" : "+"}${Math.abs(points).toFixed(POINTS_DIGITS)}`;
}

const quantity = (name) => name.replaceAll("_", " ");

function figure(value) {
  if (value === null || value === undefined) return "–";
  return Number.isInteger(value) ? String(value) : String(Number(value.toFixed(DIGITS)));
}

function numbersOf(numbers) {
  if (!numbers || !(numbers.one.length || numbers.other.length)) return [];
  const list = (values) => foreign(values.join(", ") || "–");
  return [table("Numbers in only one of the texts", [["This page", ""], ["Other page", ""]], [[list(numbers.one), list(numbers.other)]])];
}
