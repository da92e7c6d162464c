// The page at `/why`: explains a verdict. The query names the page, so the URL can be shared.
import { corrections } from "./corrections.js";
import { cards, foreign, el, fill, link, table } from "./dom.js";
import { count, score } from "./format.js";
import { ask, TokenNeeded } from "./line.js";
import { bitsOf } from "./why_bits.js";
import { ruleOf } from "./why_rule.js";
import { features, passages } from "./why_text.js";

const DECIDED = {
  text: "by its text",
  row: "by a row of the rule table",
  distance: "by the distance of the fingerprints",
  person: "by a person",
  guard: "by a guard",
  address: "because of an earlier visit of the same URL, or of the one that it names as canonical",
  nothing: "because no row of the rule holds",
  unjudged: "because there is too little text",
};
const here = new URLSearchParams(location.search);
const byId = (id) => document.getElementById(id);
const note = (...text) => el("p", { class: "note" }, ...text);

// Return `/why` with some parameters changed; null removes one.
function whyUrl(changes) {
  const query = new URLSearchParams(here);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) query.delete(name);
    else query.set(name, value);
  }
  return `/why?${query}`;
}

function apiQuery() {
  const query = new URLSearchParams();
  const name = here.get("sequence") ? "sequence" : "url";
  query.set(name, here.get(name));
  for (const option of ["of", "neighbours"]) if (here.get(option)) query.set(option, here.get(option));
  return query;
}

async function show() {
  byId("url").value = here.get("url") ?? "";
  byId("of").value = here.get("of") ?? "";
  if (!here.get("url") && !here.get("sequence")) return;
  let answer;
  try {
    answer = await ask(`/api/why?${apiQuery()}`);
    trouble(null);
  } catch (error) {
    return trouble(error);
  }
  byId("url").value = answer.page.url;
  document.title = `Why: ${answer.page.title || answer.page.url} · twinsieve`;
  showVerdict(answer);
  corrections(byId("correct"), answer, showResult);
  showPair(answer.page, answer.match ?? answer.neighbours[0] ?? null);
  showNeighbours(answer);
}

function showVerdict({ page, verdict, first_verdict: first, decided_by: decided, policy, space, notes, has_groups: hasGroups }) {
  const original = verdict?.of_url ? [" of ", link(verdict.of_url)] : [];
  if (verdict?.of_base) original.push(" in the base ", foreign(verdict.of_base));
  showSection("verdict",
    verdict && el("p", {}, el("strong", { class: `verdict ${verdict.kind}`, "data-figure": "verdict" }, verdict.kind), ...original, ": ",
      verdict.reason ? el("q", {}, foreign(verdict.reason)) : null, ` ${DECIDED[decided] ?? decided}`, verdict.guard ? ` (${verdict.guard})` : null, "."),
    el("dl", { class: "facts" },
      fact("Page", link(page.url, page.title || page.url)),
      first ? fact("Verdict at first", foreign(first.reason ? `${first.kind}: ${first.reason}` : first.kind)) : null,
      hasGroups ? fact("Group", el("a", { href: `/group?sequence=${page.sequence}` }, "all its copies")) : null,
      verdict && fact("Score of the verdict", score(verdict.score)),
      fact("Rule in force", foreign(policy.text)),
      fact("Space", space)),
    notes.map((text) => note(foreign(text))));
}

function fact(name, ...value) {
  return [el("dt", {}, name), el("dd", {}, ...value)];
}

function showPair(page, pair) {
  if (!pair) {
    for (const id of ["sides", "rule", "bits", "passages", "features"]) byId(id).hidden = true;
    return;
  }
  showSection("sides", sides(page, pair.other));
  showSection("rule", ...ruleOf(pair));
  showSection("bits", ...bitsOf(pair));
  showSection("passages", ...passages(pair, whyUrl({ of: pair.other.sequence })));
  showSection("features", ...features(pair));
}

function sides(one, other) {
  const rows = [
    ["Title", (page) => foreign(page.title || "–")],
    ["URL", (page) => link(page.url)],
    ["Sequence", (page) => count(page.sequence)],
    ["Compared with later pages", (page) => (page.kept ? "yes" : "no")],
    ["Letters, as they are counted", (page) => count(page.letters_counted)],
    ["Shingles", (page) => count(page.shingles)],
    ["Sentences", (page) => count(page.sentences)],
    ["Numbers in the text", (page) => count(page.numbers)],
  ];
  return table("The two pages", [["", ""], ["This page", ""], ["Other page", ""]],
    rows.map(([name, value]) => [name, value(one), value(other)]));
}

function showNeighbours(answer) {
  const rows = answer.neighbours.map(({ other, channels, matches, judged, why_not: whyNot, row }) => [
    link(other.url, other.title || other.url),
    channels.map((channel) => `${channel.channel} ${channel.distance ?? "–"}`).join(", "),
    judged ?? (matches ? "duplicate" : "apart"),
    foreign(whyNot ?? row ?? "–"),
    el("a", { href: whyUrl({ of: other.sequence }), "aria-label": `Compare with ${other.title || other.url}` }, "compare"),
  ]);
  showSection("neighbours", rows.length
    ? cards("Nearest neighbours", [["Page", ""], ["Bits", ""], ["Compared", ""], ["Reason", ""], ["", ""]], rows)
    : el("p", {}, el("a", { href: whyUrl({ of: null, neighbours: 5 }) }, "Search for the nearest neighbours")));
}

function showSection(id, ...content) {
  fill(byId(id), ...content);
  byId(id).hidden = false;
}

// Show the result of a correction: its text, or an error.
async function showResult(text, error) {
  trouble(error);
  byId("said").hidden = !text;
  byId("said").textContent = text ?? "";
  if (text) await show();
}

function trouble(error) {
  const shown = byId("trouble");
  shown.hidden = !error;
  shown.textContent = !error ? "" : error instanceof TokenNeeded
    ? "This dashboard needs its token: reload the page to enter it."
    : error.message;
}

await show();
document.documentElement.dataset.ready = "";
