// The charts over the last hour or day.
import { chart } from "./charts.js";
import { percent, rate, time } from "./format.js";

const TICKS = 5; // times of day that fit on a phone

// rings: the history; span: "hour" or "day"; now: Unix seconds.
export function overTime(rings, span, now) {
  const bins = rings.bins(span, now);
  const x = bins.map((bin) => local(bin.start));
  const xaxis = { type: "date", range: rings.range(span, now).map(local), tickformat: "%H:%M", tickangle: 0, nticks: TICKS };
  const newestFirst = () => [...bins].reverse();
  const last = bins.at(-1);
  const line = (name, kind, colour, more = {}) => ({
    name, x, y: bins.map((bin) => bin[kind]), type: "scatter", mode: "lines", line: { color: colour, width: 2 }, ...more,
  });

  chart(byId("chart-pages"), {
    summary: last ? `Now ${rate(last.pages)} pages and ${rate(last.duplicates)} duplicates a second.` : "No pages yet.",
    columns: [["From", ""], ["Pages/s", "number"], ["Duplicates/s", "number"]],
    rows: () => newestFirst().map((bin) => [time(bin.start), rate(bin.pages), rate(bin.duplicates)]),
    traces: (colours) => [
      line("pages/s", "pages", colours.one),
      line("duplicates/s", "duplicates", colours.two, { line: { color: colours.two, width: 2, dash: "dot" } }),
    ],
    layout: { xaxis },
  });
  chart(byId("chart-share"), {
    summary: last ? `Now ${percent(last.share)} of pages are duplicates.` : "No pages yet.",
    columns: [["From", ""], ["Share", "number"]],
    rows: () => newestFirst().map((bin) => [time(bin.start), percent(bin.share)]),
    traces: (colours) => [line("duplicates", "share", colours.two, { mode: "lines+markers", marker: { size: 4 } })],
    layout: { xaxis, yaxis: { range: [0, 1], tickformat: ".0%" }, showlegend: false },
  });
  chart(byId("chart-errors"), {
    summary: last ? `Now ${rate(last.errors)} errors a second.` : "No errors yet.",
    columns: [["From", ""], ["Errors/s", "number"]],
    rows: () => newestFirst().map((bin) => [time(bin.start), rate(bin.errors)]),
    traces: (colours) => [{ name: "errors/s", x, y: bins.map((bin) => bin.errors), type: "bar", marker: { color: colours.bad } }],
    layout: { xaxis, yaxis: bins.some((bin) => bin.errors) ? {} : { range: [0, 1] }, showlegend: false },
  });
}

const byId = (id) => document.getElementById(id);

// Local time without a zone, as plotly expects it.
function local(unixSeconds) {
  const shift = new Date(unixSeconds * 1000).getTimezoneOffset() * 60;
  return new Date((unixSeconds - shift) * 1000).toISOString().slice(0, -1);
}
