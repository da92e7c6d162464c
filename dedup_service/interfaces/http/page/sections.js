// The sections with tables and sentences: everything but charts and the newest duplicates.
import { bar, cards, foreign, el, fill, link, table } from "./dom.js";
import { bytes, count, percent, rate } from "./format.js";
import { whyLink } from "./rows.js";

const NUMBER = "number";
const note = (...text) => el("p", { class: "note" }, ...text);
const byId = (id) => document.getElementById(id);

export function tiles(summary) {
  const { rates, verdicts, lag } = summary;
  const lags = Object.values(lag).map((step) => step.records);
  const figures = [
    ["Pages", count(summary.pages), "pages"],
    ["Pages a second", rate(rates.pages), "rate"],
    ["Duplicates", count(verdicts.duplicate ?? 0), "duplicates"],
    ["Duplicate share now", percent(rates.duplicate_share), "share-now"],
    ["Kept in the index", count(summary.entries), "entries"],
    ["Lag, records", lags.length ? count(Math.max(...lags)) : "–", "lag"],
    ["Errors a second", rate(rates.errors), "errors"],
  ];
  fill(byId("tiles"), figures.map(([name, figure, key]) =>
    el("div", {}, el("dt", {}, name), el("dd", { "data-figure": key }, figure))));
}

export function verdicts(summary) {
  const total = summary.pages;
  const inLog = (...cells) => (summary.before ? cells : []);
  const rows = Object.entries(summary.verdicts).map(([verdict, pages]) => [
    el("span", { class: `verdict ${verdict}` }, verdict), ...inLog(count(pages + summary.before?.[verdict])), count(pages),
    percent(total ? pages / total : null), bar(total ? pages / total : 0),
  ]);
  const columns = [["Verdict", ""], ...inLog(["In the log", NUMBER]), [inLog("Since start")[0] ?? "Pages", NUMBER]];
  fill(byId("verdicts"), table("Pages by verdict", [...columns, ["Share", NUMBER], ["", "bar"]], rows),
    note(`${count(summary.rejected)} records were not pages; ${count(summary.repeated)} were read again and got the verdict they had.`),
    guarded(summary.guarded), claims(summary.claim_refused));
}

// Pages that matched a kept page, but that a guard left undecided.
function guarded(counts) {
  const guards = Object.entries(counts).filter(([, pages]) => pages);
  if (!guards.length) return null;
  const list = guards.map(([guard, pages]) => `${guard} ${count(pages)}`).join(", ");
  return el("p", { "data-figure": "guarded" }, `Undecided because of guards: ${list}. A site may return one page for all addresses.`);
}

// Pages that name a kept page as canonical whose text is not theirs.
function claims(pages) {
  if (!pages) return null;
  return el("p", { "data-figure": "claim_refused" },
    `${count(pages)} pages name a page with another text as canonical. Each was judged under its own address.`);
}

export function falseDrops(data) {
  const sentence = data.checked
    ? `By their full texts, ${percent(data.share)} of duplicates are false: ${count(data.wrong)} of ${count(data.checked)} that were compared again. `
      + `The true share lies between ${percent(data.low)} and ${percent(data.high)} (95% interval).`
    : "No duplicate has been compared again by full text yet.";
  const wrong = data.newest_wrong.map((row) => el("li", {}, link(row.url, row.title || row.url), " · ", whyLink(row)));
  fill(byId("false-drops"), el("p", { "data-figure": "false-drops" }, sentence),
    note(`A seeded ${percent(data.sample)} of duplicates is sampled, at most one a second: ${count(data.sampled)} so far. `
      + `${count(data.unchecked)} of them could not be compared because a text is no longer kept.`),
    wrong.length ? el("ul", {}, wrong) : null);
}

export function hosts(data, choose) {
  const host = (name) => {
    const button = el("button", { type: "button", class: "plain", "aria-label": `Show duplicates of ${name}` }, foreign(name));
    button.addEventListener("click", () => choose(name));
    return button;
  };
  const rows = data.pairs.map((pair) => [host(pair.source), host(pair.copy), count(pair.pages)]);
  const section = byId("hosts");
  const key = JSON.stringify(data);
  if (section.dataset.key === key) return;
  section.dataset.key = key;
  fill(section, rows.length ? table("Hosts of originals and copies", [["Original", ""], ["Copy", ""], ["Pages", NUMBER]], rows) : note("No duplicates yet."),
    data.over ? note(`A pair that is not listed has at most ${count(data.over)} pages.`) : null);
}

export function groups(data) {
  const rows = data.largest.map((group) => [
    el("span", { class: "page-title" }, link(group.url, group.title || group.url)), count(group.pages)]);
  fill(byId("groups"), rows.length ? table("Kept pages with the most copies", [["Kept page", ""], ["Copies", NUMBER]], rows) : note("No duplicates yet."));
}

export function lag(summary) {
  const rows = Object.entries(summary.lag).flatMap(([step, { partitions }]) =>
    Object.entries(partitions).map(([partition, records]) => [step, partition, count(records)]));
  const age = summary.lag_age_s === null ? null : `${Math.round(summary.lag_age_s)} s`;
  fill(byId("lag"), rows.length ? table("Records not done yet", [["Step", ""], ["Partition", ""], ["Records", NUMBER]], rows)
    : note(age ? "Not known." : "No lag here: pages are decided as they arrive."),
  age ? note(`The brokers last answered ${age} ago.`) : null,
  summary.processes.length ? table("Processes", [["Process", ""], ["Step", ""], ["Partitions", ""]],
    summary.processes.map(({ name, step, partitions }) => [name, step, partitions.join(", ") || "none"])) : null,
  summary.processes.length ? note("None leads. Who decides partition 0 writes dedup.stats.") : null);
}

export function index(data) {
  if (!data) return fill(byId("index"), note("No pages yet."));
  const columns = [["Channel", ""], ["Fingerprints", NUMBER], ["Largest bucket", NUMBER], ["Skew", NUMBER], ["Split", NUMBER], ["Memory", NUMBER]];
  const rows = Object.entries(data.channels).map(([channel, sizes]) => [
    channel, count(sizes.fingerprints), count(sizes.largest_bucket), rate(sizes.skew), count(sizes.split_buckets), bytes(sizes.bytes),
  ]);
  const removed = Object.entries(data.removals).map(([reason, pages]) => `${count(pages)} ${reason}`).join(", ");
  fill(byId("index"), note(`${count(data.entries)} kept pages in ${bytes(data.bytes)}. Removed: ${removed}.`),
    cards("Indexes by channel", columns, rows));
}

export function pool(data) {
  fill(byId("pool"), data
    ? cards("Workers", [["Workers", NUMBER], ["Ready", NUMBER], ["Busy", NUMBER], ["Pages waiting", NUMBER], ["Died", NUMBER]],
      [[count(data.processes), count(data.ready), count(data.busy), count(data.waiting), count(data.deaths)]])
    : note("Pages are prepared in the process itself."));
}
