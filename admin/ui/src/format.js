// SPDX-License-Identifier: MIT
// Formats numbers and times for display. Pure functions that convert base units (seconds, events,
// events per second) to text.

export const NONE = "–";

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const isNothing = (n) => n === null || n === undefined || Number.isNaN(n);

export function count(n) {
  if (isNothing(n)) return NONE;
  if (Math.abs(n) >= 1e9) return (n / 1e9).toFixed(2) + " G";
  if (Math.abs(n) >= 1e7) return (n / 1e6).toFixed(1) + " M";
  return whole.format(n);
}

// "512 B", "41 MB", "1.3 GB": powers of ten, like the rest of the page.
export function bytes(n) {
  if (isNothing(n)) return NONE;
  const units = ["B", "kB", "MB", "GB", "TB"];
  const i = n < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(n) / 3));
  return `${i === 0 ? whole.format(n) : digits(n / 1000 ** i)} ${units[i]}`;
}

// A rate per second, such as "0", "0.4", "12", "1,204", "840 k".
export function rate(n) {
  if (isNothing(n)) return NONE;
  if (n === 0) return "0";
  if (n < 0.05) return "<0.1";
  if (n < 10) return n.toFixed(1).replace(/\.0$/, "");
  if (n >= 1e6) return (n / 1e6).toFixed(2) + " M";
  if (n >= 1e5) return whole.format(n / 1e3) + " k";
  return whole.format(n);
}

// Like rate(), for narrow spaces: "15.7 k".
export function shortRate(n) {
  return n >= 9999.5 && n < 1e5 ? (n / 1e3).toFixed(1) + " k" : rate(n);
}

export function seconds(s) {
  if (isNothing(s)) return NONE;
  if (s === Infinity) return "> 100 s";
  if (s <= 0) return "0";
  if (s < 1e-3) return digits(s * 1e6) + " µs";
  if (s < 1) return digits(s * 1e3) + " ms";
  if (s < 600) return digits(s) + " s";
  return span(s);
}

function digits(x) {
  return x < 9.95 ? x.toFixed(1).replace(/\.0$/, "") : whole.format(x);
}

export const percent = (x) =>
  (isNothing(x) ? NONE : x > 0 && x < 0.01 ? "<1 %" : `${Math.round(100 * x)} %`);

// Long times, such as "4 min 10 s", "3 h 2 min", "5 d 4 h".
export function span(s) {
  s = Math.floor(s);
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function clock(unix) {
  return new Date(unix * 1000).toLocaleTimeString("en-GB", { hour12: false });
}

export function day(unix) {
  return new Date(unix * 1000).toLocaleDateString("en-GB", { day: "numeric", month: "short" });
}

export const iso = (unix) => new Date(unix * 1000).toISOString();

// "30 % degraded"; "" at full quality.
export const degraded = (s) => (s.degradation > 0 ? `${Math.round(100 * s.degradation)} % degraded` : "");

export const word = (text) => String(text).replaceAll("_", " ");

// Shorten long names in the middle, since they often differ at their ends.
export function shorten(text, n) {
  const end = Math.floor((n - 1) / 2);
  return text.length > n ? `${text.slice(0, n - 1 - end)}…${text.slice(text.length - end)}` : text;
}

// "40 of 1,024, 3 held"; short: "40 + 3 held", "40 queued".
export function queueText(s, short) {
  const length = short ? `${count(s.queue.length)} queued` : `${count(s.queue.length)} of ${count(s.queue.limit)}`;
  return s.held > 0 ? (short ? `${count(s.queue.length)} + ${count(s.held)} held` : `${length}, ${count(s.held)} held`) : length;
}

// "61 of 64 under way, 18 ms each, 312/s; widening stopped helping at 64"; "" for a stage that holds no events.
export const widthText = (s) =>
  (s.width ? `${count(s.width.in_work)} of ${count(s.width.now)} under way${s.width.why ? `, ${s.width.why}` : ""}` : "");

export const plural = (n, one) => `${count(n)} ${one}${n === 1 ? "" : "s"}`;

// Formatters by unit, for charts.
export const UNITS = {
  rate: (n) => (isNothing(n) ? NONE : `${rate(n)}/s`),
  seconds,
  count,
  share: percent,
};
