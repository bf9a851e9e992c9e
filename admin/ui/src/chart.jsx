/* SPDX-License-Identifier: MIT */
// A chart over time. uPlot draws the lines; names, values and the tooltip are text next to the
// drawing.
//
// The lines differ by dash pattern as well as by colour. When a chart has the focus, the arrow keys
// move a cursor along the time axis, and the legend shows the values at that time. Dragging selects
// a range, which is stored in the address.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import { clock, day, span, UNITS } from "./format.js";
import { setParams, theme } from "./route.js";
import { stats } from "./series.js";
import { useWidth } from "./use.js";

export const STYLES = [
  { color: "--c1", dash: [] },
  { color: "--c2", dash: [7, 4] },
  { color: "--c3", dash: [2, 3] },
  { color: "--c4", dash: [9, 3, 2, 3] },
  { color: "--c5", dash: [4, 2] },
  { color: "--c6", dash: [1, 4] },
];
const MARK_PX = 7; // marks this close to the pointer appear in the tooltip and the legend
const AROUND_S = 30; // before and after a mark: the time after which the outcome of a decision is known
const AROUND_SERIES = 2; // series with figures before and after a mark; the others differ little

// series: [{ name, data, style?: 0..5, fill?: bool }], at: [unix], marks: [{ at, text }].
// unit: a key of UNITS; note: one line below the title; relative: `at` starts at 0.
export function Chart({ title, unit, at, series, marks = [], range, note, relative = false, height = 170, sync }) {
  const [box, width] = useWidth();
  const plot = useRef(null);
  const live = useRef({});
  const hover = useSignal(null);
  live.current = { at, series, marks, unit, relative, hover };
  const shape = series.map((s) => `${s.name}/${s.style ?? ""}/${s.fill ? 1 : 0}`).join("|");
  const known = theme.value;

  useEffect(() => {
    if (!width) return undefined;
    const u = new uPlot(options({ live, width, height, range, sync }), dataOf(live.current), box.current);
    plot.current = u;
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const repaint = () => u.redraw(false);
    dark.addEventListener("change", repaint);
    return () => {
      dark.removeEventListener("change", repaint);
      u.destroy();
      plot.current = null;
    };
  }, [shape, width > 0, known, unit, height, relative]);

  useEffect(() => {
    const u = plot.current;
    if (!u) return;
    if (u.width !== width) u.setSize({ width, height });
    u.weirRange = range;
    u.setData(dataOf(live.current), true);
  }, [at, series, marks, width, range?.from, range?.to]);

  const place = useComputed(() => hover.value);
  const i = place.value !== null && place.value < at.length ? place.value : null;
  const show = (s) => UNITS[unit](i === null ? lastKnown(s.data) : s.data[i]);
  return (
    <figure class="chart">
      <figcaption>
        <h3>{title}</h3>
        {note && <p class="note">{note}</p>}
        <ul class="legend">
          {series.map((s, n) => (
            <li key={s.name}><Swatch n={s.style ?? n} /> {s.name} <b>{show(s)}</b></li>
          ))}
          {i !== null && <li class="when">at {relative ? `+${span(at[i])}` : clock(at[i])}</li>}
          {i !== null && near(plot.current, marks, at[i]).map((m) => <li key={`${m.at} ${m.text}`} class="near">{markText(m, at, series, unit)}</li>)}
        </ul>
      </figcaption>
      <div class="plot" ref={box} tabIndex={0} role="img" aria-label={summary(title, unit, series, marks)}
        onKeyDown={(e) => step(e, plot.current, hover)} onBlur={() => plot.current?.setCursor({ left: -10, top: -10 })}>
      </div>
    </figure>
  );
}

export function Swatch({ n }) {
  const s = STYLES[n % STYLES.length];
  return (
    <svg class={`swatch s${(n % STYLES.length) + 1}`} viewBox="0 0 22 8" width="22" height="8" aria-hidden="true">
      <path d="M1 4H21" stroke-dasharray={s.dash.join(" ") || undefined} />
    </svg>
  );
}

function lastKnown(data) {
  for (let i = data.length - 1; i >= 0; i--) if (data[i] !== null && data[i] !== undefined) return data[i];
  return null;
}

function summary(title, unit, series, marks) {
  const parts = series.map((s) => {
    const x = stats(s.data);
    return x ? `${s.name}: now ${UNITS[unit](lastKnown(s.data))}, at most ${UNITS[unit](x.max)}` : `${s.name}: no data`;
  });
  return `Chart of ${title}. ${parts.join("; ")}.${marks.length ? ` ${marks.length} marks.` : ""} Arrow keys move along it.`;
}

// ---- marks ----

const near = (u, marks, t) => (u ? marks.filter((m) => Math.abs(u.valToPos(m.at, "x") - u.valToPos(t, "x")) <= MARK_PX).slice(0, 4) : []);

// Mean of the values within AROUND_S before (`side` -1) or after (1) the time `t`; null if there are none.
function meanAround(at, data, t, side) {
  let sum = 0, n = 0;
  for (let i = 0; i < at.length; i++) {
    const d = (at[i] - t) * side;
    if (d > 0 && d <= AROUND_S && data[i] !== null && data[i] !== undefined) sum += data[i], n++;
  }
  return n ? sum / n : null;
}

// For example "grow: 3 → 4 threads by weir; p99 82 ms → 14 ms, p50 20 ms → 4 ms": what was marked, and the means before and after it.
export function markText(m, at, series, unit) {
  const show = UNITS[unit];
  const figures = series.slice(0, AROUND_SERIES).map((s) => [s.name, meanAround(at, s.data, m.at, -1), meanAround(at, s.data, m.at, 1)])
    .filter(([, before, after]) => before !== null && after !== null).map(([name, before, after]) => `${name} ${show(before)} → ${show(after)}`);
  return figures.length ? `${m.text}; ${figures.join(", ")}` : m.text;
}

const dataOf = ({ at, series }) => [at, ...series.map((s) => s.data)];

// ---- the keyboard ----

function step(e, u, hover) {
  const n = u?.data[0].length;
  if (!n) return;
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30, Home: -Infinity, End: Infinity }[e.key];
  if (e.key === "Escape") return u.setCursor({ left: -10, top: -10 });
  if (by === undefined) return;
  e.preventDefault();
  const to = Math.max(0, Math.min(n - 1, (hover.value ?? n) + by));
  u.setCursor({ left: u.valToPos(u.data[0][to], "x"), top: u.over.clientHeight / 3 });
}

// ---- uPlot ----

// The colours are light-dark() expressions, so the colour in use is read from the computed style.
function paint(u, name) {
  const probe = u.root;
  u.weirProbe ??= probe.appendChild(Object.assign(document.createElement("i"), { hidden: true }));
  u.weirProbe.style.color = `var(${name})`;
  return getComputedStyle(u.weirProbe).color;
}

function options({ live, width, height, range, sync }) {
  const { series, unit, relative } = live.current;
  const show = unit === "rate" ? (v) => UNITS.rate(v).replace("/s", "") : UNITS[unit];
  const axis = { font: "11px Inter, system-ui, sans-serif", stroke: (u) => paint(u, "--soft"),
    grid: { stroke: (u) => paint(u, "--grid"), width: 1 }, ticks: { show: false }, border: { show: false } };
  return {
    width, height, padding: [10, relative ? 24 : 18, 0, 0], legend: { show: false },
    cursor: { y: false, points: { size: 7 }, drag: { x: true, y: false, setScale: false },
      ...(sync ? { sync: { key: sync, setSeries: false } } : {}) },
    scales: {
      x: { time: false, range: (u, min, max) => xRange(u.weirRange || range, min, max) },
      y: { range: (u, min, max) => (unit === "share" ? [0, 1] : [0, max > 0 ? max * 1.08 : 1]) },
    },
    axes: [
      { ...axis, space: 70, size: 26, gap: 4, incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200],
        values: (u, splits, i, space, incr) => splits.map((t) => (relative ? `+${short(t)}` : hour(t, incr))) },
      { ...axis, space: 34, size: unit === "seconds" ? 58 : 52, gap: 6, values: (u, splits) => splits.map(show),
        incrs: unit === "count" ? [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 2e4, 5e4, 1e5, 1e6, 1e7] : undefined },
    ],
    series: [{}, ...series.map((s, n) => {
      const style = STYLES[(s.style ?? n) % STYLES.length];
      return { label: s.name, width: 1.6, dash: style.dash, points: { show: false },
        stroke: (u) => paint(u, style.color), fill: s.fill ? (u) => faded(paint(u, style.color)) : undefined };
    })],
    plugins: [marksPlugin(live), tipPlugin(live)],
    hooks: { setSelect: [(u) => choose(u, live)] },
  };
}

const xRange = (range, min, max) => (range ? [range.from, range.to] : [min ?? 0, max ?? 1]);

function faded(color) {
  const numbers = color.match(/[\d.]+/g);
  return `rgba(${numbers.slice(0, 3).join(",")},0.12)`;
}

function hour(t, incr) {
  const text = clock(t);
  return incr < 60 ? text : text.slice(0, 5);
}

const short = (s) => (s < 60 ? `${s} s` : `${Math.round(s / 6) / 10} min`);

// Put a range selected by dragging into the address.
function choose(u, live) {
  if (u.select.width < 8 || live.current.relative) return;
  const from = Math.floor(u.posToVal(u.select.left, "x"));
  const to = Math.ceil(u.posToVal(u.select.left + u.select.width, "x"));
  u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  if (to - from >= 3) setParams({ from, to, range: null });
}

// Decisions and changes: a flag on the time axis and a thin vertical line.
function marksPlugin(live) {
  return { hooks: { draw: [(u) => {
    const { ctx, bbox } = u, r = devicePixelRatio || 1;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - 6 * r, bbox.top, bbox.width + 12 * r, bbox.height + 8 * r);
    ctx.clip();
    ctx.strokeStyle = ctx.fillStyle = paint(u, "--mark");
    ctx.lineWidth = r;
    for (const m of live.current.marks) {
      const x = Math.round(u.valToPos(m.at, "x", true)), y = bbox.top + bbox.height;
      ctx.globalAlpha = 0.35;
      ctx.setLineDash([2 * r, 3 * r]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, y);
      ctx.stroke();
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x - 4 * r, y + 5 * r);
      ctx.lineTo(x + 4 * r, y + 5 * r);
      ctx.lineTo(x, y - 3 * r);
      ctx.fill();
    }
    ctx.restore();
  }] } };
}

function make(tag, className, text) {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text; // text from the server is never parsed as HTML
  return node;
}

function tipPlugin(live) {
  const tip = make("div", "tip");
  tip.hidden = true;
  tip.setAttribute("aria-hidden", "true"); // the legend shows the same
  return { hooks: {
    init: [(u) => u.over.append(tip)],
    setCursor: [(u) => {
      const { hover } = live.current;
      const i = u.cursor.left >= 0 ? u.cursor.idx : null;
      hover.value = i ?? null;
      const here = i !== null && i !== undefined && u.root.parentElement?.matches(":hover, :focus");
      tip.hidden = !here;
      if (here) fillTip(u, tip, live.current, i);
    }],
  } };
}

function fillTip(u, tip, { at, series, marks, unit, relative }, i) {
  const head = make("p", "tip-time", relative ? `+${span(at[i])}` : `${day(at[i])}, ${clock(at[i])}`);
  const rows = series.map((s) => {
    const row = make("p", "tip-row");
    row.append(make("span", "", s.name), make("b", "", UNITS[unit](s.data[i])));
    return row;
  });
  tip.replaceChildren(head, ...rows, ...near(u, marks, at[i]).map((m) => make("p", "tip-mark", markText(m, at, series, unit))));
  const room = u.over.clientWidth;
  const left = u.cursor.left + 14 + tip.offsetWidth > room ? u.cursor.left - tip.offsetWidth - 14 : u.cursor.left + 14;
  tip.style.left = `${Math.max(-40, left)}px`;
}
