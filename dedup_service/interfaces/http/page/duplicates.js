// The table of newest duplicates: live, filtered, and still where somebody reads it.
import { el } from "./dom.js";
import { count } from "./format.js";
import { ask } from "./line.js";
import { rowOf } from "./rows.js";

const PAGE = 20;
const MOST = 50;

export class Duplicates {
  #body = document.querySelector("#rows tbody");
  #state = document.getElementById("rows-state");
  #pause = document.getElementById("pause");
  #older = document.getElementById("older");
  #filter = document.getElementById("filter");
  #rows = [];
  #waiting = 0;
  #asked = 0;
  #most = MOST;

  constructor(onTrouble) {
    this.trouble = onTrouble;
    this.#filter.addEventListener("submit", (event) => {
      event.preventDefault();
      this.load();
    });
    this.#filter.addEventListener("reset", () => queueMicrotask(() => this.load()));
    this.#filter.verdict.addEventListener("change", () => this.load());
    this.#pause.addEventListener("click", () => this.#toggle());
    this.#older.addEventListener("click", () => this.#load(this.#rows.at(-1)?.number));
    for (const part of document.querySelectorAll("#rows thead, #rows tbody")) part.setAttribute("role", "rowgroup");
    document.querySelector("#rows").setAttribute("role", "table");
    for (const row of document.querySelectorAll("#rows thead tr")) row.setAttribute("role", "row");
    for (const head of document.querySelectorAll("#rows th")) head.setAttribute("role", "columnheader");
  }

  get paused() {
    return this.#pause.getAttribute("aria-pressed") === "true";
  }

  // Show those of one host.
  choose(host) {
    this.#filter.host.value = host;
    this.load();
    document.getElementById("newest").focus();
  }

  // Ask for the newest again, and go on from there.
  load() {
    this.#most = MOST;
    return this.#load();
  }

  async #load(before) {
    const asked = ++this.#asked;
    const query = new URLSearchParams({ limit: PAGE });
    for (const name of ["host", "verdict"]) if (this.#wanted[name]) query.set(name, this.#wanted[name]);
    if (before) query.set("before", before);
    try {
      const found = await ask(`/api/duplicates?${query}`);
      if (asked !== this.#asked) return; // another answer is on its way
      this.#rows = before ? [...this.#rows, ...found.rows] : found.rows;
      if (before) this.#most = Math.max(this.#most, this.#rows.length);
      this.#older.hidden = !found.more;
      this.#waiting = 0;
      this.#body.replaceChildren(...this.#rows.map(rowOf));
      this.#tell();
    } catch (error) {
      this.trouble(error);
    }
  }

  // rows: newest first; missed: how many more there were.
  add({ rows, missed }) {
    const newest = this.#rows[0]?.number ?? 0;
    const fresh = rows.filter((row) => row.number > newest && this.#fits(row));
    if (this.paused) {
      this.#waiting += fresh.length + missed;
      this.#tell();
    } else if (missed) {
      this.load();
    } else if (fresh.length) {
      this.#rows = [...fresh, ...this.#rows].slice(0, this.#most);
      this.#body.prepend(...fresh.map(rowOf));
      while (this.#body.children.length > this.#rows.length) {
        this.#body.lastElementChild.remove();
        this.#older.hidden = false;
      }
      this.#tell();
    }
  }

  #fits(row) {
    const { host, verdict } = this.#wanted;
    return (!verdict || row.verdict === verdict) && (!host || row.host === host || row.of_host === host);
  }

  get #wanted() {
    const { host, verdict } = this.#filter;
    return { host: host.value.trim().toLowerCase(), verdict: verdict.value };
  }

  #toggle() {
    this.#pause.setAttribute("aria-pressed", String(!this.paused));
    this.#pause.textContent = this.paused ? "Go on" : "Pause";
    if (this.paused) this.#tell();
    else this.load();
  }

  #tell() {
    const waiting = this.#waiting ? `, ${count(this.#waiting)} new ones wait` : "";
    this.#state.textContent = this.paused ? `Paused${waiting}.` : this.#rows.length ? "" : "None yet.";
  }

  // Offer the hosts that are known.
  offer(pairs) {
    const known = new Set(pairs.flatMap((pair) => [pair.source, pair.copy]));
    document.getElementById("hosts-known").replaceChildren(...[...known].map((host) => el("option", { value: host })));
  }
}
