// The table of newest pages: live, with a search, and with a pause for reading.
import { el, isWeb } from "./dom.js";
import { count } from "./format.js";
import { ask } from "./line.js";
import { rowOf } from "./rows.js";

const PAGE_ROWS = 20;
const MAX_ROWS = 50;

export class Duplicates {
  #body = document.querySelector("#rows tbody");
  #state = document.getElementById("rows-state");
  #pause = document.getElementById("pause");
  #older = document.getElementById("older");
  #filter = document.getElementById("filter");
  #rows = [];
  #waiting = 0;
  #request = 0;
  #maxRows = MAX_ROWS;

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

  // Show the duplicates of one host.
  choose(host) {
    this.#filter.search.value = host;
    this.load();
    document.getElementById("newest").focus();
  }

  // Load rows that no event brings, unless somebody reads them.
  refresh() {
    if (/^un(ique|decided)$/.test(this.#wanted.verdict) && !this.paused && this.#rows.length <= PAGE_ROWS) this.load();
  }

  // Load the newest rows again, and continue from there.
  load() {
    this.#maxRows = MAX_ROWS;
    return this.#load();
  }

  async #load(before) {
    const request = ++this.#request;
    const query = new URLSearchParams({ limit: PAGE_ROWS });
    for (const name of ["search", "verdict"]) if (this.#wanted[name]) query.set(name, this.#wanted[name]);
    if (before) query.set("before", before);
    try {
      const answer = await ask(`/api/duplicates?${query}`);
      if (request !== this.#request) return; // a later request is in progress
      this.#rows = before ? [...this.#rows, ...answer.rows] : answer.rows;
      if (before) this.#maxRows = Math.max(this.#maxRows, this.#rows.length);
      this.#older.hidden = !answer.more;
      this.#waiting = 0;
      this.#body.replaceChildren(...this.#rows.map(rowOf));
      this.#showState();
    } catch (error) {
      this.trouble(error);
    }
  }

  // rows: newest first; missed: number of further rows.
  add({ rows, missed }) {
    const newest = this.#rows[0]?.number ?? 0;
    const fresh = rows.filter((row) => row.number > newest && this.#fits(row));
    if (this.paused) {
      this.#waiting += fresh.length + missed;
      this.#showState();
    } else if (missed) {
      this.load();
    } else if (fresh.length) {
      this.#rows = [...fresh, ...this.#rows].slice(0, this.#maxRows);
      this.#body.prepend(...fresh.map(rowOf));
      while (this.#body.children.length > this.#rows.length) {
        this.#body.lastElementChild.remove();
        this.#older.hidden = false;
      }
      this.#showState();
    }
  }

  #fits(row) {
    const { search, verdict } = this.#wanted;
    const names = [row.url, row.host, row.title, row.id, row.of_url, row.of_host];
    return (!verdict || row.verdict === verdict) && names.some((name) => name.toLowerCase().includes(search));
  }

  get #wanted() {
    return { search: this.#filter.search.value.trim().toLowerCase(), verdict: this.#filter.verdict.value };
  }

  #toggle() {
    this.#pause.setAttribute("aria-pressed", String(!this.paused));
    this.#pause.textContent = this.paused ? "Resume" : "Pause";
    if (this.paused) this.#showState();
    else this.load();
  }

  #showState() {
    const waiting = this.#waiting ? `, ${count(this.#waiting)} new rows wait` : "";
    const url = this.#filter.search.value.trim();
    const none = url ? "No such page among the newest. " : "No rows yet.";
    this.#state.textContent = this.paused ? `Paused${waiting}.` : this.#rows.length ? "" : none;
    if (!this.#rows.length && isWeb(url)) {
      this.#state.append(el("a", { href: `/why?${new URLSearchParams({ url })}` }, "Look for it among all kept pages"));
    }
  }
}
