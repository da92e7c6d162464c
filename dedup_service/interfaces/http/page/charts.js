// Charts by plotly.js, each with its figures as a table for those who cannot see it. Without the library only the tables
// are shown. A chart contains no text of crawled pages, because plotly interprets markup in labels.
import { el, exchange, table } from "./dom.js";

const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false, showTips: false };
const drawn = new Map();

document.addEventListener("themechange", () => {
  for (const redraw of drawn.values()) redraw();
});

// figure: the element; summary: one sentence; columns, rows: the table; traces(colours), layout: for plotly.
export function chart(figure, { summary, columns, rows, traces, layout = {} }) {
  const plot = figure.querySelector(".plot") ?? figure.appendChild(el("div", { class: "plot", role: "img" }));
  plot.setAttribute("aria-label", summary);
  figures(figure, columns, rows);
  if (!window.Plotly) {
    plot.hidden = true;
    return;
  }
  const redraw = () => {
    const colours = palette();
    const [data, fullLayout] = [traces(colours), withDefaults(layout, colours)];
    const key = JSON.stringify([data, fullLayout]); // drawing costs a hundred times as much as this comparison
    if (plot.drawnKey !== key) window.Plotly.react(plot, data, fullLayout, CONFIG);
    plot.drawnKey = key;
  };
  drawn.set(figure, redraw);
  redraw();
}

// The table is filled when it is opened, and updated while it is open.
function figures(figure, columns, rows) {
  let details = figure.querySelector("details");
  if (!details) {
    details = figure.appendChild(el("details", {}, el("summary", {}, "Figures"), el("div")));
    details.addEventListener("toggle", () => details.fillIn());
  }
  const caption = figure.querySelector("figcaption").textContent;
  details.fillIn = () => {
    if (details.open) exchange(details.lastElementChild, table(caption, columns, rows()));
  };
  details.fillIn();
}

function palette() {
  const probe = document.body.appendChild(el("span", { hidden: true }));
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    text: colour("text"), grid: colour("edge"), one: colour("one"), two: colour("two"), bad: colour("bad"),
  };
  probe.remove();
  return colours;
}

function withDefaults(layout, colours) {
  const axis = { gridcolor: colours.grid, zerolinecolor: colours.grid, linecolor: colours.grid, fixedrange: true };
  return {
    height: 240,
    margin: { l: 48, r: 12, t: 8, b: 40 },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    font: { color: colours.text, family: "system-ui, sans-serif", size: 12 },
    legend: { orientation: "h", y: 1.02, yanchor: "bottom" },
    hovermode: "x unified",
    hoverlabel: { bgcolor: "rgb(30,33,40)", font: { color: "rgb(240,240,240)" } },
    showlegend: true,
    dragmode: false,
    ...layout,
    xaxis: { ...axis, ...layout.xaxis },
    yaxis: { ...axis, rangemode: "tozero", ...layout.yaxis },
  };
}
