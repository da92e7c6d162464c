// The page at `/group`: the pages of a group, and which of them stands for it. The query names a page of it.
import { cards, el, fill, foreign, link } from "./dom.js";
import { bits, count, moment, percent, score } from "./format.js";
import { ask, TokenNeeded } from "./line.js";

const REMOVED = {
  retraction: "retracted",
  unwritten: "never passed on",
  update: "has another text by now",
  correction: "a person moved it to another group",
};
const COLUMNS = [["Page", ""], ["Verdict", "short"], ["Bits", "phrase"], ["Score", "number"], ["Rule", "phrase"], ["Letters", "number"],
  ["Main text", "number"], ["Published", "short"], ["Logged", ""], ["Canonical", ""], ["Why", "short"]];
const here = new URLSearchParams(location.search);
const byId = (id) => document.getElementById(id);

async function show() {
  byId("url").value = here.get("url") ?? "";
  byId("canonical").value = here.get("canonical") ?? "";
  if (!here.get("url") && !here.get("sequence")) return;
  let group;
  try {
    group = await ask(`/api/group?${apiQuery()}`);
  } catch (error) {
    return trouble(error);
  }
  const named = group.members.find((member) => String(member.sequence) === here.get("sequence"));
  if (!byId("url").value && named) byId("url").value = named.url;
  showGroup(group);
  showMembers(group);
}

function apiQuery() {
  const query = new URLSearchParams();
  const name = here.get("sequence") ? "sequence" : "url";
  query.set(name, here.get(name));
  if (here.get("canonical")) query.set("canonical", here.get("canonical"));
  return query;
}

function showGroup(group) {
  const standsFor = group.canonical ? el("span", { class: "page-url" }, link(group.canonical.url)) : "none: all its pages are gone";
  const earlier = group.follows === null ? [] : fact("Before its text changed",
    el("a", { href: `/group?sequence=${group.follows}` }, `group ${count(group.follows)}`));
  showSection("group", el("dl", { class: "facts" },
    fact("Stands for it", standsFor), fact("Policy", foreign(group.policy)),
    fact("URLs", el("span", { "data-figure": "size" }, count(group.size))),
    fact("Records of the log", `${count(group.records)}${group.has_more ? " and more, which were not read" : ""}`), earlier));
}

function showMembers(group) {
  const rows = group.members.map((member) => [
    [el("span", { class: "page-title" }, link(member.url, member.title || member.url)),
      member.removed ? el("span", {}, REMOVED[member.removed] ?? member.removed) : null],
    el("span", { class: `verdict ${member.verdict}` }, member.verdict),
    bits(member.distance),
    score(member.score),
    member.reason ? foreign(member.reason) : null,
    count(member.letters),
    percent(member.text_percent === null ? null : member.text_percent / 100),
    member.date === null ? null : el("time", { datetime: member.date }, member.date),
    moment(member.at === null ? null : Date.parse(member.at) / 1000),
    member.sequence === group.canonical?.sequence ? "yes" : "no",
    el("a", { href: `/why?sequence=${member.sequence}`, "aria-label": `Why: ${member.title || member.url}` }, "why"),
  ]);
  const omitted = group.omitted ? el("p", { class: "note" }, `${count(group.omitted)} later pages are not listed.`) : null;
  showSection("members", cards("Its pages", COLUMNS, rows), omitted);
}

function fact(name, ...value) {
  return [el("dt", {}, name), el("dd", {}, ...value)];
}

function showSection(id, ...content) {
  fill(byId(id), ...content);
  byId(id).hidden = false;
}

function trouble(error) {
  byId("trouble").hidden = false;
  byId("trouble").textContent = error instanceof TokenNeeded
    ? "This dashboard needs its token: reload the page to enter it."
    : error.message;
}

await show();
document.documentElement.dataset.ready = "";
