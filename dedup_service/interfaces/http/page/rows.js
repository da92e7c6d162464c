// One row of the table of duplicates. On a phone each row becomes a card, so each cell has its heading as an attribute.
import { foreign, el, link } from "./dom.js";
import { bits, moment, score, time } from "./format.js";

export function whyLink(row) {
  const query = new URLSearchParams({ url: row.url, sequence: row.sequence });
  return el("a", { href: `/why?${query}`, "aria-label": `Why: ${row.title || row.url}` }, "why");
}

export function rowOf(row) {
  const cell = (title, ...content) => el("td", { role: "cell", "data-title": title }, ...content);
  return el("tr", { role: "row", "data-number": row.number },
    cell("Time", el("time", { datetime: new Date(row.at * 1000).toISOString(), title: moment(row.at) }, time(row.at))),
    cell("Verdict", el("span", { class: `verdict ${row.verdict}` }, row.verdict)),
    cell("Page", page(row.title, row.url)),
    cell("Original", page("", row.of_url ?? row.of), row.of_base ? [" in ", foreign(row.of_base)] : null),
    cell("Bits", bits(row.distance)),
    cell("Score", score(row.score)),
    cell("Rule", row.reason ?? "–"),
    cell("Why", whyLink(row)));
}

function page(title, url) {
  return [title ? el("span", { class: "page-title" }, foreign(title)) : null, el("span", { class: "page-url" }, link(url))];
}
