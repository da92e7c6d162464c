// The last hour by seconds and the last day by minutes, updated by ticks.
//
// The seconds of a tick are set, not added, so that receiving one twice changes nothing. A minute is always the sum of
// its seconds.
const KINDS = ["pages", "duplicates", "errors"];
const DAY_STEP = 60;
// Width of a bin by span: 360 and 288 points, which is as many as a chart can show.
const BIN_S = { hour: 10, day: 300 };
const SPAN_S = { hour: 3600, day: 86400 };
const MIN_SPAN_S = { hour: 600, day: 3600 };

export class Rings {
  constructor(history, startedAt) {
    this.hour = history.hour;
    this.day = history.day;
    this.startedAt = startedAt;
  }

  // seconds: [[start, pages, duplicates, errors], …]
  put(seconds) {
    for (const [start, ...counts] of seconds) {
      const slot = slotOf(this.hour, start);
      if (slot < 0) continue;
      KINDS.forEach((kind, i) => (this.hour[kind][slot] = counts[i]));
      this.#sumMinute(start - (start % DAY_STEP));
    }
  }

  #sumMinute(start) {
    const slot = slotOf(this.day, start);
    const from = (start - this.hour.start) / this.hour.step_s;
    if (slot < 0 || from < 0) return;
    for (const kind of KINDS) {
      this.day[kind][slot] = sum(this.hour[kind].slice(from, from + DAY_STEP));
    }
  }

  // Return [{start, pages, duplicates, errors, share}, …]: rates per second, oldest first. now: Unix seconds.
  bins(span, now) {
    const ring = this[span];
    const width = BIN_S[span];
    const bins = new Map();
    ring.pages.forEach((_, i) => {
      const start = ring.start + i * ring.step_s;
      if (start + ring.step_s <= this.startedAt || start > now) return;
      const bin = start - (start % width);
      const sums = bins.get(bin) ?? { pages: 0, duplicates: 0, errors: 0 };
      for (const kind of KINDS) sums[kind] += ring[kind][i];
      bins.set(bin, sums);
    });
    return [...bins].map(([start, sums]) => {
      const seconds = Math.max(1, Math.min(start + width, now) - Math.max(start, Math.floor(this.startedAt)));
      const rates = Object.fromEntries(KINDS.map((kind) => [kind, sums[kind] / seconds]));
      return { start, ...rates, share: sums.pages ? sums.duplicates / sums.pages : null };
    });
  }

  // Return [from, to] of the time axis; it is short for a new process, whose data would else be a thin line.
  range(span, now) {
    const end = Math.ceil(now / BIN_S[span]) * BIN_S[span];
    return [Math.max(end - SPAN_S[span], Math.min(this.startedAt, end - MIN_SPAN_S[span])), end];
  }
}

// Return the slot of `start`, -1 if it is older than all; if it is newer than all, the ring moves forward.
function slotOf(ring, start) {
  const length = ring.pages.length;
  const slot = Math.floor((start - ring.start) / ring.step_s);
  const over = slot - length + 1;
  if (over <= 0) return slot < 0 ? -1 : slot;
  for (const kind of KINDS) {
    const kept = ring[kind].slice(Math.min(over, length));
    ring[kind] = kept.concat(new Array(length - kept.length).fill(0));
  }
  ring.start += over * ring.step_s;
  return length - 1;
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
