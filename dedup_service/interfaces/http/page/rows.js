// One row of the table of duplicates, whose headings are in index.html.
import { card, el, foreign, link } from "./dom.js";
import { bits, moment, score, time } from "./format.js";

const COLUMNS = [["Time", "short"], ["Verdict", "short"], ["Page", ""], ["Original", ""], ["Bits", "phrase"], ["Score", "short"],
  ["Rule", "phrase"], ["Why", "short"]];

export function whyLink(row) {
  const query = new URLSearchParams({ url: row.url, sequence: row.sequence });
  return el("a", { href: `/why?${query}`, "aria-label": `Why: ${row.title || row.url}` }, "why");
}

export function rowOf(row) {
  return card(COLUMNS, [
    el("time", { datetime: new Date(row.at * 1000).toISOString(), title: moment(row.at) }, time(row.at)),
    el("span", { class: `verdict ${row.verdict}` }, row.verdict),
    page(row.title, row.url),
    [page("", row.of_url ?? row.of), row.of_base ? [" in ", foreign(row.of_base)] : null].flat(),
    bits(row.distance),
    score(row.score),
    row.reason,
    whyLink(row),
  ], { "data-number": row.number });
}

function page(title, url) {
  return [title ? el("span", { class: "page-title" }, foreign(title)) : null, el("span", { class: "page-url" }, link(url))];
}
