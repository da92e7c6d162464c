// The charts of distances, scores and latency.
import { chart } from "./charts.js";
import { cards } from "./dom.js";
import { count, duration } from "./format.js";

const MIN_BITS = 16;

export function distances({ without, ...channels }) {
  const names = Object.keys(channels);
  const furthest = Math.max(MIN_BITS, ...names.map((name) => channels[name].findLastIndex(Boolean)));
  const bits = Array.from({ length: furthest + 1 }, (_, bit) => bit);
  const missing = Object.entries(without).filter(([, pages]) => pages);
  const total = (name) => channels[name].reduce((sum, pages) => sum + pages, 0);
  chart(document.getElementById("chart-distances"), {
    summary: names.map((name) => `${name}: ${count(total(name))} duplicates, ${count(channels[name][0])} with no differing bit`)
      .concat(missing.map(([name, pages]) => `${count(pages)} without ${name}`)).join("; ") || "No duplicates yet.",
    columns: [["Bits", "number"], ...names.map((name) => [name, "number"])],
    rows: () => bits.map((bit) => [count(bit), ...names.map((name) => count(channels[name][bit]))]),
    traces: (colours) => names.map((name, i) => ({
      name, x: bits, y: bits.map((bit) => channels[name][bit]), type: "bar",
      marker: { color: [colours.one, colours.two][i % 2], pattern: { shape: ["", "/"][i % 2] } },
    })),
    layout: { xaxis: { title: { text: "differing bits of 64" } }, barmode: "group" },
  });
}

export function scores({ step, counts, without }) {
  const from = counts.map((_, i) => i * step);
  chart(document.getElementById("chart-scores"), {
    summary: `${count(counts.reduce((sum, pages) => sum + pages, 0))} duplicates with a score, ${count(without)} without.`,
    columns: [["Score from", "number"], ["Duplicates", "number"]],
    rows: () => counts.map((pages, i) => [from[i].toFixed(2), count(pages)]),
    traces: (colours) => [{
      name: "duplicates", x: from.map((start) => start + step / 2), y: counts, type: "bar", width: step * 0.9,
      marker: { color: colours.two },
    }],
    layout: { xaxis: { range: [0, 1], title: { text: "score" } }, showlegend: false },
  });
}

export function latency(parts) {
  const names = parts.map(({ step, part }) => `${step}: ${part}`);
  const bar = (name, kind, colour, shape) => ({
    name, x: parts.map((part) => part[kind]), y: names, type: "bar", orientation: "h",
    marker: { color: colour, pattern: { shape } },
  });
  chart(document.getElementById("chart-latency"), {
    summary: parts.map((part, i) => `${names[i]}: half within ${duration(part.p50_s)}, 99% within ${duration(part.p99_s)}`)
      .join("; ") || "No batches yet.",
    columns: [["Part", ""], ["p50", "number"], ["p99", "number"]],
    rows: () => parts.map((part, i) => [names[i], duration(part.p50_s), duration(part.p99_s)]),
    traces: (colours) => [bar("p50", "p50_s", colours.one, ""), bar("p99", "p99_s", colours.two, "/")],
    layout: {
      margin: { l: 130, r: 12, t: 8, b: 40 },
      xaxis: { type: "log", title: { text: "seconds" }, tickformat: "~s" },
      yaxis: { rangemode: "normal", autorange: "reversed" },
      barmode: "group",
      hovermode: "y unified",
    },
  });
  const columns = [["Step", ""], ["Part", ""], ["Batches", "number"], ["p50", "number"], ["p99", "number"], ["Per page", "number"]];
  return cards("Time by step and part", columns, parts.map((part) => [
    part.step, part.part, count(part.batches), duration(part.p50_s), duration(part.p99_s), duration(part.page_s),
  ]));
}
