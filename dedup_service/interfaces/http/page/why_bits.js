// The fingerprints, block by block, with the bits that differ; and which table finds the pair.
import { el, table } from "./dom.js";

const BLOCK = 16;

export function bitsOf(pair) {
  const { keys } = pair;
  const shared = keys.shared.length ? `${keys.shared.length} of ${keys.one} and ${keys.other} keys are shared: ${keys.shared.join(", ")}.` : "No key is shared.";
  return [
    ...pair.channels.flatMap(channelOf),
    el("h3", {}, "Keys"),
    el("p", {}, keys.used ? "" : "The rule does not look for keys. ", shared),
  ];
}

function channelOf(channel) {
  const heading = el("h3", {}, `Channel ${channel.channel}`);
  if (channel.distance === null) return [heading, el("p", {}, "One of the two has no fingerprint here.")];
  const reach = channel.radius === null ? "This index is not asked." : channel.found
    ? `Its index looks as far as ${channel.radius} and finds the pair, first in table ${channel.table}.`
    : `Its index looks as far as ${channel.radius} and does not find the pair.`;
  const columns = [["Block", "number"], ["This page", ""], ["The other", ""], ["Differ", "number"], ["May", "number"], ["", ""]];
  const rows = channel.blocks.map((block) => [
    String(block.block),
    el("span", { class: "bits" }, spell(block.one, block, channel.bits)),
    el("span", { class: "bits" }, spell(block.other, block, channel.bits)),
    String(block.differing),
    block.tolerance < 0 ? "–" : String(block.tolerance),
    el("span", { class: block.agrees ? "holds" : "fails" }, block.agrees ? "✓ agrees" : "✗ differs"),
  ]);
  return [
    heading,
    el("p", {}, `${channel.distance} of 64 bits differ${channel.bits.length ? `: ${channel.bits.join(", ")}` : ""}. ${reach}`),
    table(`Blocks of ${channel.channel}`, columns, rows),
  ];
}

// Sixteen bits, the highest first, in fours; those that differ stand out.
function spell(hex, block, differing) {
  const bits = Number.parseInt(hex, 16).toString(2).padStart(BLOCK, "0");
  const lowest = block.bits[0];
  const fours = [[], [], [], []];
  [...bits].forEach((bit, at) => {
    const differs = differing.includes(lowest + BLOCK - 1 - at);
    fours[at >> 2].push(differs ? el("b", {}, bit) : bit);
  });
  return fours.map((four) => el("span", {}, four));
}
