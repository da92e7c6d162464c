// The page at `/`: figures once, then what ticks tell, and the slower figures again every few seconds.
import { fill } from "./dom.js";
import { Duplicates } from "./duplicates.js";
import { moment } from "./format.js";
import { ask, Line, TokenNeeded } from "./line.js";
import { overTime } from "./over_time.js";
import { problems, tell } from "./problems.js";
import { Rings } from "./rings.js";
import * as sections from "./sections.js";
import { distances, latency, scores } from "./spreads.js";

const SLOW_MS = 5000;
const byId = (id) => document.getElementById(id);
const duplicates = new Duplicates(trouble);
let rings = null;
let now = 0;

const line = new Line({
  state,
  tick({ summary, seconds }) {
    rings?.put(seconds);
    showSummary(summary);
  },
  duplicates: (told) => duplicates.add(told),
  problem: tell,
  removal: () => slow(),
  correction: () => slow(),
  reset: () => all(),
});

// Everything anew: at the start, and where events were missed.
async function all() {
  try {
    const found = await ask("/api/stats");
    rings = new Rings(found.history, found.summary.started_at);
    line.since(found.summary.watchers.last_event);
    showSummary(found.summary);
    showSlow(found);
    trouble(null);
  } catch (error) {
    trouble(error);
  }
  await duplicates.load();
}

async function slow() {
  if (document.hidden) return;
  try {
    const found = await ask("/api/stats?history=none");
    showSummary(found.summary);
    showSlow(found);
  } catch {
    // the line says that it is lost
  }
}

function showSummary(summary) {
  now = summary.at;
  if (document.hidden) return;
  sections.tiles(summary);
  sections.verdicts(summary);
  sections.lag(summary);
  sections.pool(summary.pool);
  problems(summary.problems);
  drawTime();
  byId("mode").textContent = summary.mode;
  byId("about").textContent =
    `twinsieve ${summary.program}, since ${moment(summary.started_at)}, space ${summary.space ?? "–"}. ` +
    (summary.scope === "log" ? "Counts are of the whole log." : "Counts are of this process.");
}

function showSlow(found) {
  sections.falseDrops(found.false_drops);
  sections.hosts(found.hosts, (host) => duplicates.choose(host));
  sections.groups(found.groups);
  sections.index(found.index);
  duplicates.offer(found.hosts.pairs);
  distances(found.distances);
  scores(found.scores);
  fill(byId("latency"), latency(found.latency));
}

function drawTime() {
  if (rings) overTime(rings, document.querySelector("input[name=span]:checked").value, now);
}

function state(name, text) {
  const shown = byId("line");
  if (shown.dataset.state === name) return;
  shown.dataset.state = name;
  shown.textContent = text;
  if (name === "token") trouble(new TokenNeeded());
  else if (name === "connected") trouble(null);
}

function trouble(error) {
  const shown = byId("trouble");
  shown.hidden = !error;
  shown.textContent = !error ? "" : error instanceof TokenNeeded
    ? "This dashboard needs its token: load the page again to give it."
    : `The figures could not be had: ${error.message}`;
}

for (const choice of document.querySelectorAll("input[name=span]")) choice.addEventListener("change", drawTime);
document.addEventListener("visibilitychange", slow);
await all();
line.open();
setInterval(slow, SLOW_MS);
