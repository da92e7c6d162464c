// Elements from values. Text becomes text and never markup, because titles and URLs come from crawled pages.

// el("p", {class: "note", hidden: true}, "text", child): an element. Strings and numbers become text nodes.
export function el(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined).map(node));
  return element;
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

// Text of a crawled page, isolated so that its writing direction does not affect the text around it.
export function foreign(text, attributes = {}) {
  return el("bdi", { ...attributes, dir: "auto" }, text ?? "");
}

// A link if the URL is http or https, otherwise plain text (javascript:, data: and so on).
export function link(url, text = url) {
  const shown = foreign(text);
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
    el("tr", {}, cells.map((cell, column) => el("td", { class: columns[column][1] || null }, cell ?? "–"))),
  );
  return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    el("table", {}, el("caption", { class: "unseen" }, caption), el("thead", {}, el("tr", {}, head)),
      el("tbody", {}, body)));
}

// The same as a table whose rows become cards on a phone. columns: [[title, class], …], "short" for cells of one line.
export function cards(caption, columns, rows) {
  const head = columns.map(([title, kind]) => el("th", { scope: "col", role: "columnheader", class: kind || null }, title));
  return el("table", { class: "cards", role: "table" }, el("caption", { class: "unseen" }, caption),
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, head)),
    el("tbody", { role: "rowgroup" }, rows.map((cells) => card(columns, cells))));
}

// One row of such a table. Cards lose the semantics of tables, so each cell has its role, and its heading.
export function card(columns, cells, attributes = {}) {
  return el("tr", { role: "row", ...attributes }, cells.map((cell, column) => {
    const [title, kind] = columns[column];
    return el("td", { role: "cell", "data-title": title, class: kind || null }, cell ?? "–");
  }));
}

// A bar of this share of its cell, which has the class "bar".
export function bar(share, kind = null) {
  const inner = el("span", { class: kind, "aria-hidden": "true" });
  inner.style.width = `${Math.round(share * 100)}%`;
  return inner;
}

// Replace the content after the heading of a section, where it changed; focus, selection and scrolling are kept.
export function fill(section, ...content) {
  const heading = section.querySelector(":scope > h2");
  const present = [...section.children].filter((child) => child !== heading);
  const fresh = content.flat().filter(Boolean);
  if (present.length !== fresh.length) {
    section.replaceChildren(...(heading ? [heading] : []), ...fresh);
    return;
  }
  present.forEach((old, position) => {
    if (!old.isEqualNode(fresh[position])) exchange(old, fresh[position]);
  });
}

// Replace `old` by `fresh`, with the same scroll position and focus.
export function exchange(old, fresh) {
  const { scrollTop, scrollLeft } = old;
  const focused = old === document.activeElement;
  old.replaceWith(fresh);
  fresh.scrollTop = scrollTop;
  fresh.scrollLeft = scrollLeft;
  if (focused) fresh.focus();
}
