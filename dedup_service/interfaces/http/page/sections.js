// What there is besides charts and duplicates: tables and sentences.
import { alien, el, fill, link, table } from "./dom.js";
import { bytes, count, percent, rate } from "./format.js";
import { whyLink } from "./rows.js";

const NUMBER = "number";
const note = (...text) => el("p", { class: "note" }, ...text);
const byId = (id) => document.getElementById(id);

export function tiles(summary) {
  const { rates, verdicts, lag } = summary;
  const behind = Object.values(lag).map((step) => step.records);
  const figures = [
    ["Pages", count(summary.pages), "pages"],
    ["Pages a second", rate(rates.pages), "rate"],
    ["Duplicates", count(verdicts.duplicate ?? 0), "duplicates"],
    ["Share now", percent(rates.duplicate_share), "share-now"],
    ["Kept in the index", count(summary.entries), "entries"],
    ["Lag, records", behind.length ? count(Math.max(...behind)) : "–", "lag"],
    ["Errors a second", rate(rates.errors), "errors"],
  ];
  fill(byId("tiles"), figures.map(([name, figure, key]) =>
    el("div", {}, el("dt", {}, name), el("dd", { "data-figure": key }, figure))));
}

export function verdicts(summary) {
  const total = summary.pages;
  const rows = Object.entries(summary.verdicts).map(([verdict, pages]) => [
    el("span", { class: `verdict ${verdict}` }, verdict), count(pages), percent(total ? pages / total : null),
    bar(total ? pages / total : 0),
  ]);
  fill(byId("verdicts"), table("Pages by verdict", [["Verdict", ""], ["Pages", NUMBER], ["Share", NUMBER], ["", "bar"]], rows),
    note(`${count(summary.rejected)} records were no pages; ${count(summary.repeated)} came again and got their old verdict.`),
    guarded(summary.guarded));
}

// What a guard held matched a kept page, which had more copies than can be believed.
function guarded(counts) {
  const held = Object.entries(counts).filter(([, pages]) => pages);
  if (!held.length) return null;
  const by = held.map(([guard, pages]) => `${guard} ${count(pages)}`).join(", ");
  return el("p", { "data-figure": "guarded" }, `Guards hold pages that match: ${by}. A site may answer every address with one page.`);
}

function bar(share) {
  const inner = el("span", { "aria-hidden": "true" });
  inner.style.width = `${Math.round(share * 100)}%`;
  return inner;
}

export function falseDrops(found) {
  const sentence = found.checked
    ? `${percent(found.share)} of duplicates are none by their full texts: ${count(found.wrong)} of ${count(found.checked)} compared again. `
      + `The true share lies between ${percent(found.low)} and ${percent(found.high)} (95% interval).`
    : "No duplicate was compared again by its full text yet.";
  const wrong = found.newest_wrong.map((row) => el("li", {}, link(row.url, row.title || row.url), " · ", whyLink(row)));
  fill(byId("false-drops"), el("p", { "data-figure": "false-drops" }, sentence),
    note(`A seeded ${percent(found.sample)} of duplicates is drawn, one a second at most: ${count(found.sampled)} so far, of which `
      + `${count(found.unchecked)} could not be compared because a text was gone.`),
    wrong.length ? el("ul", {}, wrong) : null);
}

export function hosts(found, choose) {
  const host = (name) => {
    const button = el("button", { type: "button", class: "plain", "aria-label": `Show duplicates of ${name}` }, alien(name));
    button.addEventListener("click", () => choose(name));
    return button;
  };
  const rows = found.pairs.map((pair) => [host(pair.source), host(pair.copy), count(pair.pages)]);
  const section = byId("hosts");
  const key = JSON.stringify(found);
  if (section.dataset.key === key) return;
  section.dataset.key = key;
  fill(section, rows.length ? table("Hosts, source and copy", [["Source", ""], ["Copy", ""], ["Pages", NUMBER]], rows) : note("No duplicates yet."),
    found.over ? note(`A pair that is not listed has at most ${count(found.over)} pages.`) : null);
}

export function groups(found) {
  const rows = found.largest.map((group) => [link(group.url, group.title || group.url), count(group.pages)]);
  fill(byId("groups"), rows.length ? table("Kept pages with most copies", [["Kept page", ""], ["Copies", NUMBER]], rows) : note("No duplicates yet."));
}

export function lag(summary) {
  const rows = Object.entries(summary.lag).flatMap(([step, { partitions }]) =>
    Object.entries(partitions).map(([partition, records]) => [step, partition, count(records)]));
  fill(byId("lag"), rows.length ? table("Records not done yet", [["Step", ""], ["Partition", ""], ["Records", NUMBER]], rows)
    : note("There is no log here to lag behind: pages are decided as they come."));
}

export function index(found) {
  if (!found) return fill(byId("index"), note("No pages yet."));
  const columns = [["Channel", ""], ["Fingerprints", NUMBER], ["Largest bucket", NUMBER], ["Skew", NUMBER], ["Split", NUMBER], ["Memory", NUMBER]];
  const rows = Object.entries(found.channels).map(([channel, sizes]) => [
    channel, count(sizes.fingerprints), count(sizes.largest_bucket), rate(sizes.skew), count(sizes.split_buckets), bytes(sizes.bytes),
  ]);
  const removed = Object.entries(found.removals).map(([reason, pages]) => `${count(pages)} ${reason}`).join(", ");
  fill(byId("index"), note(`${count(found.entries)} kept pages in ${bytes(found.bytes)}. Removed: ${removed}.`),
    table("Indexes by channel", columns, rows));
}

export function pool(found) {
  fill(byId("pool"), found
    ? table("Worker processes", [["Processes", NUMBER], ["Ready", NUMBER], ["Busy", NUMBER], ["Pages waiting", NUMBER], ["Deaths", NUMBER]],
      [[count(found.processes), count(found.ready), count(found.busy), count(found.waiting), count(found.deaths)]])
    : note("Pages are prepared in the process itself."));
}
