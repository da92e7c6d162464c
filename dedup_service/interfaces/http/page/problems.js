// Problems: the number of each kind, and the texts of the newest.
import { foreign, el, fill, table } from "./dom.js";
import { count, time } from "./format.js";

export function problems({ problems: survived, rejected }, newest) {
  const counts = rejected ? { ...survived, rejected } : survived;
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
