// The page at `/why`: asks why, and shows what is answered. The address says what is asked, so it can be sent to others.
import { corrections } from "./corrections.js";
import { alien, el, fill, link, table } from "./dom.js";
import { count, score } from "./format.js";
import { ask, TokenNeeded } from "./line.js";
import { bitsOf } from "./why_bits.js";
import { ruleOf } from "./why_rule.js";
import { features, passages } from "./why_text.js";

const DECIDED = {
  row: "by a row of the rule table",
  distance: "by the distance of the fingerprints",
  person: "by a person",
  guard: "by a guard",
  address: "because of an earlier visit of the same address",
  nothing: "because no row of the rule held",
  unjudged: "because there was too little to judge",
};
const here = new URLSearchParams(location.search);
const byId = (id) => document.getElementById(id);
const note = (...text) => el("p", { class: "note" }, ...text);

// `/why` with some parameters changed; null leaves one out.
function address(changes) {
  const query = new URLSearchParams(here);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) query.delete(name);
    else query.set(name, value);
  }
  return `/why?${query}`;
}

function asked() {
  const query = new URLSearchParams();
  const name = here.get("sequence") ? "sequence" : "url";
  query.set(name, here.get(name));
  for (const more of ["of", "neighbours"]) if (here.get(more)) query.set(more, here.get(more));
  return query;
}

async function show() {
  byId("url").value = here.get("url") ?? "";
  byId("of").value = here.get("of") ?? "";
  if (!here.get("url") && !here.get("sequence")) return;
  let found;
  try {
    found = await ask(`/api/why?${asked()}`);
    trouble(null);
  } catch (error) {
    return trouble(error);
  }
  byId("url").value = found.page.url;
  document.title = `Why: ${found.page.title || found.page.url} · twinsieve`;
  verdict(found);
  corrections(byId("correct"), found, said);
  pair(found.page, found.match ?? found.neighbours[0] ?? null);
  neighbours(found);
}

function verdict({ page, verdict: given, decided_by: decided, policy, space, notes }) {
  const same = given.of_url ? [" of ", link(given.of_url)] : [];
  showSection("verdict",
    el("p", {}, el("strong", { class: `verdict ${given.kind}`, "data-figure": "verdict" }, given.kind), ...same, ": ",
      given.reason ? el("q", {}, alien(given.reason)) : null, ` ${DECIDED[decided] ?? decided}`, given.guard ? ` (${given.guard})` : null, "."),
    el("dl", { class: "facts" },
      fact("Page", link(page.url, page.title || page.url)),
      fact("Score", score(given.score)),
      fact("Rule in force", alien(policy.text)),
      fact("Space", space)),
    notes.map((text) => note(alien(text))));
}

function fact(name, ...value) {
  return [el("dt", {}, name), el("dd", {}, ...value)];
}

function pair(one, found) {
  if (!found) {
    for (const id of ["sides", "rule", "bits", "passages", "features"]) byId(id).hidden = true;
    return;
  }
  showSection("sides", sides(one, found.other));
  showSection("rule", ...ruleOf(found));
  showSection("bits", ...bitsOf(found));
  showSection("passages", ...passages(found, address({ of: found.other.sequence })));
  showSection("features", ...features(found));
}

function sides(one, other) {
  const rows = [
    ["Title", (page) => alien(page.title || "–")],
    ["Address", (page) => link(page.url)],
    ["Number", (page) => count(page.sequence)],
    ["Compared with later pages", (page) => (page.kept ? "yes" : "no")],
    ["Letters", (page) => count(page.letters)],
    ["Shingles", (page) => count(page.shingles)],
    ["Sentences", (page) => count(page.sentences)],
    ["Numbers in the text", (page) => count(page.numbers)],
  ];
  return table("The two pages", [["", ""], ["This page", ""], ["The other", ""]],
    rows.map(([name, value]) => [name, value(one), value(other)]));
}

function neighbours(found) {
  const rows = found.neighbours.map(({ other, channels, matches, judged, why_not: whyNot, row }) => [
    link(other.url, other.title || other.url),
    channels.map((channel) => `${channel.channel} ${channel.distance ?? "–"}`).join(", "),
    judged ?? (matches ? "duplicate" : "apart"),
    alien(whyNot ?? row ?? "–"),
    el("a", { href: address({ of: other.sequence }), "aria-label": `Compare with ${other.title || other.url}` }, "compare"),
  ]);
  showSection("neighbours", rows.length
    ? table("Nearest neighbours", [["Page", ""], ["Bits", ""], ["Is it one?", ""], ["Why, or why not", ""], ["", ""]], rows)
    : el("p", {}, el("a", { href: address({ of: null, neighbours: 5 }) }, "Look for the nearest neighbours")));
}

function showSection(id, ...content) {
  fill(byId(id), ...content);
  byId(id).hidden = false;
}

// A correction was taken, or was not.
async function said(text, error) {
  trouble(error);
  byId("said").hidden = !text;
  byId("said").textContent = text ?? "";
  if (text) await show();
}

function trouble(error) {
  const shown = byId("trouble");
  shown.hidden = !error;
  shown.textContent = !error ? "" : error instanceof TokenNeeded
    ? "This dashboard needs its token: load the page again to give it."
    : error.message;
}

await show();
document.documentElement.dataset.ready = "";
