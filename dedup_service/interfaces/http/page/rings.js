// The last hour by seconds and the last day by minutes, kept up to date by what ticks tell.
//
// A tick's seconds are put in place, not added, so that one told twice changes nothing; a minute is the sum of its
// seconds again.
const KINDS = ["pages", "duplicates", "errors"];
const DAY_STEP = 60;
// Seconds of a bin, by span: 360 and 288 points are as many as a chart can show.
const BIN_S = { hour: 10, day: 300 };
const SPAN_S = { hour: 3600, day: 86400 };
const LEAST_S = { hour: 600, day: 3600 };

export class Rings {
  constructor(history, startedAt) {
    this.hour = history.hour;
    this.day = history.day;
    this.startedAt = startedAt;
  }

  // seconds: [[start, pages, duplicates, errors], …]
  put(seconds) {
    for (const [start, ...counts] of seconds) {
      const at = place(this.hour, start);
      if (at < 0) continue;
      KINDS.forEach((kind, i) => (this.hour[kind][at] = counts[i]));
      this.#minute(start - (start % DAY_STEP));
    }
  }

  #minute(start) {
    const at = place(this.day, start);
    const from = (start - this.hour.start) / this.hour.step_s;
    if (at < 0 || from < 0) return;
    for (const kind of KINDS) {
      this.day[kind][at] = sum(this.hour[kind].slice(from, from + DAY_STEP));
    }
  }

  // [{start, pages, duplicates, errors, share}, …]: a second, oldest first. now: Unix seconds.
  bins(span, now) {
    const ring = this[span];
    const width = BIN_S[span];
    const found = new Map();
    ring.pages.forEach((_, i) => {
      const start = ring.start + i * ring.step_s;
      if (start + ring.step_s <= this.startedAt || start > now) return;
      const bin = start - (start % width);
      const sums = found.get(bin) ?? { pages: 0, duplicates: 0, errors: 0 };
      for (const kind of KINDS) sums[kind] += ring[kind][i];
      found.set(bin, sums);
    });
    return [...found].map(([start, sums]) => {
      const seconds = Math.max(1, Math.min(start + width, now) - Math.max(start, Math.floor(this.startedAt)));
      const rates = Object.fromEntries(KINDS.map((kind) => [kind, sums[kind] / seconds]));
      return { start, ...rates, share: sums.pages ? sums.duplicates / sums.pages : null };
    });
  }

  // [from, to] of the time axis: a young process need not be a thin line at the right edge.
  range(span, now) {
    const end = Math.ceil(now / BIN_S[span]) * BIN_S[span];
    return [Math.max(end - SPAN_S[span], Math.min(this.startedAt, end - LEAST_S[span])), end];
  }
}

// Index of the slot of `start`; the ring moves on where it is newer than all, and -1 where it is older than all.
function place(ring, start) {
  const length = ring.pages.length;
  const at = Math.floor((start - ring.start) / ring.step_s);
  const over = at - length + 1;
  if (over <= 0) return at < 0 ? -1 : at;
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
