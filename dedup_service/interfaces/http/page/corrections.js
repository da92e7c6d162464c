// What a person knows better: buttons that say so, and what was said so far.
import { alien, el, fill, link, table } from "./dom.js";
import { moment } from "./format.js";
import { ask } from "./line.js";

// found: the answer of `/api/why`; said(text, error): told what became of it.
export function corrections(section, found, said) {
  const { page, match } = found;
  const rows = found.corrections.map((given) => [
    link(given.url), given.duplicate ? "is a duplicate of" : "is not a duplicate of", link(given.of),
    given.by ? `${given.by}, ${moment(given.at)}` : "–", alien(given.reason || "–"),
  ]);
  const columns = [["Page", ""], ["", ""], ["Page", ""], ["Said by", ""], ["Reason", ""]];
  fill(section,
    match ? form("not-duplicate", page.url, match.other.url, false, said) : null,
    form("is-duplicate", page.url, "", true, said),
    rows.length ? el("h3", {}, "In force") : null,
    rows.length ? table("Corrections in force", columns, rows) : null);
  section.hidden = false;
}

// A form that says one thing. of: the other page, "" where it has to be named.
function form(id, url, of, duplicate, said) {
  const other = el("input", { name: "of", id: `${id}-of`, type: "url", required: true, maxlength: 2000, spellcheck: "false" });
  const reason = el("input", { name: "reason", id: `${id}-reason`, maxlength: 200 });
  const made = el("form", { id, class: "filter" },
    of ? el("p", {}, "It was matched with ", link(of)) : el("p", { class: "grow" }, el("label", { for: other.id }, "It is a copy of"), other),
    el("p", { class: "grow" }, el("label", { for: reason.id }, "Reason (may be left out)"), reason),
    el("p", {}, el("button", {}, duplicate ? "Is a duplicate of it" : "Not a duplicate")));
  made.addEventListener("submit", (event) => {
    event.preventDefault();
    send(made, { url, of: of || other.value, duplicate, reason: reason.value }, said);
  });
  return made;
}

async function send(made, correction, said) {
  const button = made.querySelector("button");
  button.disabled = true;
  try {
    const answer = await ask("/api/corrections", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(correction),
    });
    await said(`Taken: ${answer.effect}.`, null);
  } catch (error) {
    await said(null, error);
  } finally {
    button.disabled = false;
  }
}
