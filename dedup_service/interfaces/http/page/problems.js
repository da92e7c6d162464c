// Problems: how many of each kind, and the newest ones in their own words.
import { alien, el, fill, table } from "./dom.js";
import { count, time } from "./format.js";

const MOST = 20;
const newest = [];

export function tell(problem) {
  newest.unshift(problem);
  newest.length = Math.min(newest.length, MOST);
}

export function problems(counts) {
  const kinds = Object.entries(counts);
  const lines = newest.map((problem) =>
    el("li", {}, `${time(problem.at)} ${problem.step} ${problem.kind}${problem.count > 1 ? ` × ${count(problem.count)}` : ""}: `,
      alien(problem.text)));
  fill(document.getElementById("problems"),
    kinds.length
      ? table("Problems by kind", [["Kind", ""], ["Times", "number"]], kinds.map(([kind, times]) => [kind, count(times)]))
      : el("p", { class: "note" }, "None."),
    lines.length ? el("ul", { class: "log" }, lines) : null);
}
