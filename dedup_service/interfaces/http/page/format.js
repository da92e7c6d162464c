// Numbers in readable form; an unknown value is a dash.
const DASH = "–";
const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const rough = new Intl.NumberFormat("en", { maximumSignificantDigits: 3 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const known = (value) => value !== null && value !== undefined && Number.isFinite(value);

export const count = (value) => (known(value) ? whole.format(value) : DASH);
export const rate = (value) => (known(value) ? rough.format(value) : DASH);
export const percent = (share) => (known(share) ? `${rough.format(share * 100)}%` : DASH);
export const score = (value) => (known(value) ? value.toFixed(3) : DASH);
export const time = (unixSeconds) => (known(unixSeconds) ? clock.format(unixSeconds * 1000) : DASH);
export const moment = (unixSeconds) => (known(unixSeconds) ? day.format(unixSeconds * 1000) : DASH);

// 12_600_000 → "12.6 MB"
export function bytes(size) {
  if (!known(size)) return DASH;
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(1, size)) / 3));
  return `${rough.format(size / 1000 ** step)} ${units[step]}`;
}

// 0.0123 → "12.3 ms"
export function duration(seconds) {
  if (!known(seconds)) return DASH;
  if (seconds < 1e-3) return `${rough.format(seconds * 1e6)} µs`;
  if (seconds < 1) return `${rough.format(seconds * 1e3)} ms`;
  return `${rough.format(seconds)} s`;
}

// {words: 2, body: null} → "words 2, body –"
export function bits(distance) {
  return Object.entries(distance ?? {}).map(([channel, value]) => `${channel} ${value ?? DASH}`).join(", ");
}
