// Problems: the number of each kind, and the texts of the newest.
import { foreign, el, fill, table } from "./dom.js";
import { count, time } from "./format.js";

const MAX_NEWEST = 20;
const newest = [];

export function addProblem(problem) {
  newest.unshift(problem);
  newest.length = Math.min(newest.length, MAX_NEWEST);
}

export function problems(counts) {
  const kinds = Object.entries(counts);
  const lines = newest.map((problem) =>
    el("li", {}, `${time(problem.at)} ${problem.step} ${problem.kind}${problem.count > 1 ? ` × ${count(problem.count)}` : ""}: `,
      foreign(problem.text)));
  fill(document.getElementById("problems"),
    kinds.length
      ? table("Problems by kind", [["Kind", ""], ["Count", "number"]], kinds.map(([kind, times]) => [kind, count(times)]))
      : el("p", { class: "note" }, "None."),
    lines.length ? el("ul", { class: "log" }, lines) : null);
}
