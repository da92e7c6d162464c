// The page at `/`: all figures once, then updates from ticks, and the other figures again every few seconds.
import { fill } from "./dom.js";
import { Duplicates } from "./duplicates.js";
import { moment } from "./format.js";
import { ask, Line, TokenNeeded } from "./line.js";
import { overTime } from "./over_time.js";
import { problems } from "./problems.js";
import { Rings } from "./rings.js";
import * as sections from "./sections.js";
import { distances, latency, scores } from "./spreads.js";

const REFRESH_MS = 5000;
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
  duplicates: (rows) => duplicates.add(rows),
  removal: () => refresh(),
  correction: () => refresh(),
  reset: () => reload(),
});

// Load everything: at the start, and if events were missed.
async function reload() {
  try {
    const stats = await ask("/api/stats");
    rings = new Rings(stats.history, stats.summary.started_at);
    line.since(stats.summary.watchers.last_event);
    showSummary(stats.summary);
    showDetails(stats);
    trouble(null);
  } catch (error) {
    trouble(error);
  }
  await duplicates.load();
}

async function refresh() {
  if (document.hidden) return;
  try {
    const stats = await ask("/api/stats?history=none");
    showSummary(stats.summary);
    showDetails(stats);
  } catch {
    // the connection state shows it
  }
}

function showSummary(summary) {
  now = summary.at;
  if (document.hidden) return;
  byId("not-ready").hidden = !summary.not_ready;
  byId("not-ready").textContent = summary.not_ready && `Not ready: ${summary.not_ready}`;
  sections.tiles(summary);
  sections.verdicts(summary);
  sections.lag(summary);
  sections.pool(summary.pool);
  drawTime();
  byId("mode").textContent = summary.mode;
  byId("about").textContent =
    `twinsieve ${summary.program}, since ${moment(summary.started_at)}, space ${summary.space ?? "–"}. ` +
    (summary.scope === "log"
      ? "Counts are of what the log got since then, whichever process wrote it out; those in the log are of all its time."
      : "Counts are of this process.");
}

function showDetails(stats) {
  problems(stats.summary, stats.newest_problems);
  sections.falseDrops(stats.false_drops);
  sections.hosts(stats.hosts, (host) => duplicates.choose(host));
  sections.groups(stats.groups);
  sections.index(stats.index);
  duplicates.refresh();
  distances(stats.distances);
  scores(stats.scores);
  fill(byId("latency"), latency(stats.latency));
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
    ? "This dashboard needs its token: reload the page to enter it."
    : `The figures could not be loaded: ${error.message}`;
}

for (const choice of document.querySelectorAll("input[name=span]")) choice.addEventListener("change", drawTime);
document.addEventListener("visibilitychange", refresh);
await reload();
line.open();
setInterval(refresh, REFRESH_MS);
