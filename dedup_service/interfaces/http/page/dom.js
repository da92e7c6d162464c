// Elements from values. Text becomes text and never markup: what a page is called was written by strangers.

// el("p", {class: "note", hidden: true}, "text", child): an element. Strings and numbers become text nodes.
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, String(value));
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined).map(node));
  return made;
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

// Text of strangers: isolated, so that it turns nothing round beside it.
export function alien(text, attributes = {}) {
  return el("bdi", { ...attributes, dir: "auto" }, text ?? "");
}

// A link where the address is one of the web, the same as plain text otherwise (javascript:, data: and the like).
export function link(url, text = url) {
  const shown = alien(text);
  if (!isWeb(url)) return shown;
  return el("a", { href: url, rel: "noreferrer noopener", target: "_blank" }, shown);
}

export function isWeb(url) {
  try {
    return ["http:", "https:"].includes(new URL(url).protocol);
  } catch {
    return false;
  }
}

// A table of plain cells. columns: [[title, "number" or ""], …]; rows: lists of strings, numbers or nodes.
export function table(caption, columns, rows) {
  const head = columns.map(([title, kind]) => el("th", { scope: "col", class: kind || null }, title));
  const body = rows.map((cells) =>
    el("tr", {}, cells.map((cell, at) => el("td", { class: columns[at][1] || null }, cell ?? "–"))),
  );
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, body)));
}

// Replace what follows the heading of a section, where it changed: focus, selection and scrolling stay where they are.
export function fill(section, ...content) {
  const heading = section.querySelector(":scope > h2");
  const held = [...section.children].filter((child) => child !== heading);
  const fresh = content.flat().filter(Boolean);
  if (held.length !== fresh.length) {
    section.replaceChildren(...(heading ? [heading] : []), ...fresh);
    return;
  }
  held.forEach((old, at) => {
    if (!old.isEqualNode(fresh[at])) exchange(old, fresh[at]);
  });
}

// Put `fresh` where `old` is, scrolled and focused as that was.
export function exchange(old, fresh) {
  const { scrollTop, scrollLeft } = old;
  const focused = old === document.activeElement;
  old.replaceWith(fresh);
  fresh.scrollTop = scrollTop;
  fresh.scrollLeft = scrollLeft;
  if (focused) fresh.focus();
}
