// Corrections: forms to send one, and the corrections in force.
import { foreign, el, fill, link, table } from "./dom.js";
import { moment } from "./format.js";
import { ask } from "./line.js";

// answer: of `/api/why`; report(text, error): called with the result of a correction.
export function corrections(section, answer, report) {
  const { page, match } = answer;
  const rows = answer.corrections.map((correction) => [
    link(correction.url), correction.duplicate ? "is a duplicate of" : "is not a duplicate of", link(correction.of),
    correction.by ? `${correction.by}, ${moment(correction.at)}` : "–", foreign(correction.reason || "–"),
  ]);
  const columns = [["Page", ""], ["", ""], ["Page", ""], ["By", ""], ["Reason", ""]];
  fill(section,
    match ? form("not-duplicate", page.url, match.other.url, false, report) : null,
    form("is-duplicate", page.url, "", true, report),
    rows.length ? el("h3", {}, "In force") : null,
    rows.length ? table("Corrections in force", columns, rows) : null);
  section.hidden = false;
}

// A form that sends one correction. of: URL of the other page, "" if the form has to ask for it.
function form(id, url, of, duplicate, report) {
  const other = el("input", { name: "of", id: `${id}-of`, type: "url", required: true, maxlength: 2000, spellcheck: "false" });
  const reason = el("input", { name: "reason", id: `${id}-reason`, maxlength: 200 });
  const node = el("form", { id, class: "filter" },
    of ? el("p", {}, "It matched ", link(of)) : el("p", { class: "grow" }, el("label", { for: other.id }, "It is a duplicate of"), other),
    el("p", { class: "grow" }, el("label", { for: reason.id }, "Reason (optional)"), reason),
    el("p", {}, el("button", {}, duplicate ? "Is a duplicate of it" : "Not a duplicate")));
  node.addEventListener("submit", (event) => {
    event.preventDefault();
    send(node, { url, of: of || other.value, duplicate, reason: reason.value }, report);
  });
  return node;
}

async function send(node, correction, report) {
  const button = node.querySelector("button");
  button.disabled = true;
  try {
    const answer = await ask("/api/corrections", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(correction),
    });
    await report(`Correction recorded: ${answer.effect}.`, null);
  } catch (error) {
    await report(null, error);
  } finally {
    button.disabled = false;
  }
}
