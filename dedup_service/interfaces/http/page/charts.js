// Charts by plotly.js, each with its figures as a table for those who do not see it. Without the library the tables
// stand alone. Nothing that strangers wrote goes into a chart: plotly reads markup in labels.
import { el, exchange, table } from "./dom.js";

const CONFIG = { displayModeBar: false, responsive: true, scrollZoom: false, doubleClick: false, showTips: false };
const drawn = new Map();

document.addEventListener("themechange", () => {
  for (const again of drawn.values()) again();
});

// figure: the element; summary: one sentence; columns, rows: the figures; traces(colours), layout: plotly's.
export function chart(figure, { summary, columns, rows, traces, layout = {} }) {
  const plot = figure.querySelector(".plot") ?? figure.appendChild(el("div", { class: "plot", role: "img" }));
  plot.setAttribute("aria-label", summary);
  figures(figure, columns, rows);
  if (!window.Plotly) {
    plot.hidden = true;
    return;
  }
  const again = () => {
    const colours = palette();
    const [data, laid] = [traces(colours), laidOut(layout, colours)];
    const key = JSON.stringify([data, laid]); // drawing costs a hundred times as much as finding that nothing changed
    if (plot.drawnKey !== key) window.Plotly.react(plot, data, laid, CONFIG);
    plot.drawnKey = key;
  };
  drawn.set(figure, again);
  again();
}

// The table is made when somebody opens it, and kept up to date while it is open.
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
  const found = {
    text: colour("text"), grid: colour("edge"), one: colour("one"), two: colour("two"), bad: colour("bad"),
  };
  probe.remove();
  return found;
}

function laidOut(layout, colours) {
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
