// The fingerprints, block by block, with the differing bits, and the table that finds the pair.
import { el, table } from "./dom.js";

export function bitsOf(pair) {
  const { keys } = pair;
  const shared = keys.shared.length ? `${keys.shared.length} keys are shared, of ${keys.one} and ${keys.other}.` : "No key is shared.";
  return [
    ...pair.channels.flatMap(channelOf),
    el("h3", {}, "Keys"),
    el("p", {}, keys.used ? "" : "The rule does not use keys. ", shared),
  ];
}

function channelOf(channel) {
  const heading = el("h3", {}, `Channel ${channel.channel}`);
  if (channel.distance === null) return [heading, el("p", {}, "One of the two pages has no fingerprint in this channel.")];
  const reach = channel.radius === null ? "The rule does not search this index." : channel.found
    ? `The index searches within ${channel.radius} bits and finds the pair, first in table ${channel.table}.`
    : `The index searches within ${channel.radius} bits and does not find the pair.`;
  const columns = [["Block", "number"], ["This page", ""], ["Other page", ""], ["Differing", "number"], ["Allowed", "number"], ["Allowed in next", "number"], ["", ""]];
  const rows = channel.blocks.map((block) => [
    String(block.block),
    el("span", { class: "bits" }, bitGroups(block.one, block, channel.bits)),
    el("span", { class: "bits" }, bitGroups(block.other, block, channel.bits)),
    String(block.differing),
    block.tolerance < 0 ? "–" : String(block.tolerance),
    block.tolerance < 0 ? "–" : String(block.next_tolerance),
    el("span", { class: block.agrees ? "holds" : "fails" }, block.agrees ? "✓ agrees" : "✗ differs"),
  ]);
  return [
    heading,
    el("p", {}, `${channel.distance} of 64 bits differ${channel.bits.length ? `: ${channel.bits.join(", ")}` : ""}. ${reach}`),
    table(`Blocks of ${channel.channel}`, columns, rows),
  ];
}

// The bits of a block, the highest first, in groups of four; differing bits are marked.
function bitGroups(hex, block, differing) {
  const [lowest, highest] = block.bits;
  const bits = Number.parseInt(hex, 16).toString(2).padStart(highest - lowest + 1, "0");
  const groups = Array.from({ length: bits.length / 4 }, () => []);
  [...bits].forEach((bit, position) => {
    const differs = differing.includes(highest - position);
    groups[position >> 2].push(differs ? el("b", {}, bit) : bit);
  });
  return groups.map((group) => el("span", {}, group));
}
