// SPDX-License-Identifier: MIT
// The live graph: dagre computes the layout, SVG draws it. The width of an arrow shows its rate,
// the level in a box the queue, and the badge the shed rate. The ring shows the busy threads or,
// for a stage that holds events, the used part of the width. Every box is a link to its stage. The
// stages of a core group are in a box, with a bar for each core.

import { graphlib, layout } from "@dagrejs/dagre";
import { useMemo } from "preact/hooks";
import { count, degraded, percent, queueText, rate, seconds, shorten, shortRate, widthText } from "./format.js";
import { describeGroup } from "./groups.jsx";
import { href } from "./route.js";
import { useWidth } from "./use.js";
import { isSteered } from "./verdict.js";

// Layouts in order of preference: across or down, with large or small boxes.
const SIZES = [
  { w: 198, h: 92, dir: "LR", ranksep: 92, nodesep: 26, small: false },
  { w: 168, h: 92, dir: "LR", ranksep: 76, nodesep: 24, small: true },
  { w: 198, h: 92, dir: "TB", ranksep: 58, nodesep: 26, small: false },
  { w: 150, h: 92, dir: "TB", ranksep: 54, nodesep: 12, small: true },
];
const SCALE_GOOD = 0.86; // below this, text is hard to read and another layout is tried
const SCALE_LEAST = 0.72; // below this, the card scrolls
const SCALE_MOST = 1.12;
const HEAD = 8; // length of an arrow's head
const GROUP_HEAD = 44; // height of the text above the stages of a core group; badges reach into it
const BARS_MAX = 16; // of more cores, one bar shows the mean
const RADIUS = 17;
const RING = 2 * Math.PI * RADIUS;
const FULL = 0.8; // a queue filled beyond this share is a warning; the same limit as in verdict.js

export function Graph({ graph, now }) {
  const [box, width] = useWidth();
  const shape = JSON.stringify([graph.stages.map((s) => [s.name, s.placement]),
    graph.links.map((l) => [l.from, l.outlet, l.to, l.loop]), groupsOf(graph).map((g) => [g.name, membersOf(g)])]);
  const plan = useMemo(() => (width ? planFor(graph, width) : null), [shape, width]);
  return (
    <div class="graph-scroll" ref={box}>
      {plan && <Drawing plan={plan} graph={graph} now={now} width={width} />}
    </div>
  );
}

function Drawing({ plan, graph, now, width }) {
  const scale = Math.max(SCALE_LEAST, Math.min(SCALE_MOST, (width - 2) / plan.width));
  return (
    <svg viewBox={`${plan.left} ${plan.top} ${plan.width} ${plan.height}`} width={Math.round(plan.width * scale)} height={Math.round(plan.height * scale)}
      role="group" aria-label="Stages and the links between them; the table below has the same numbers">
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="1" refY="4" markerWidth={HEAD} markerHeight={HEAD} markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0 0.5L8 4L0 7.5z" class="arrow" />
        </marker>
        <clipPath id="box"><rect width={plan.size.w} height={plan.size.h} rx="12" /></clipPath>
      </defs>
      {plan.groups.map((box, i) => <rect key={i} class="core-group-box" x={box.x} y={box.y} width={box.w} height={box.h} rx="16" />)}
      {graph.links.map((l, i) => <Edge key={`${l.from} ${l.outlet} ${l.to}`} link={l} path={plan.paths[i]} now={now} />)}
      {groupsOf(graph).map((g, i) => <GroupHead key={g.name} g={g} box={plan.groups[i]} n={now?.groups.find((x) => x.name === g.name)} />)}
      {graph.links.map((l, i) => <EdgeLabel key={`${l.from} ${l.outlet} ${l.to}`} link={l} path={plan.paths[i]} now={now} graph={graph} />)}
      {graph.stages.map((s, i) => <Node key={s.name} stage={s} at={plan.boxes[i]} size={plan.size} s={now?.byName.get(s.name)} />)}
    </svg>
  );
}

// ---- layout ----

function planFor(graph, width) {
  const plans = SIZES.map((size) => place(graph, size));
  return plans.find((p) => width / p.width >= SCALE_GOOD) || plans.reduce((best, p) => (p.width < best.width ? p : best));
}

const groupsOf = (graph) => graph.groups || []; // an older server has none
const membersOf = (g) => (g.source ? [g.source] : []).concat(g.stages.map((s) => s.name));

function place(graph, size) {
  const groups = groupsOf(graph), more = groups.length ? GROUP_HEAD : 0; // room for the boxes of groups
  const g = new graphlib.Graph({ multigraph: true, compound: true });
  g.setGraph({ rankdir: size.dir, ranksep: size.ranksep, nodesep: size.nodesep + more, edgesep: 18, marginx: 12, marginy: 14 });
  g.setDefaultEdgeLabel(() => ({}));
  // a prefix, since dagre uses ids as keys of plain objects, which have a member "constructor"
  const id = (name) => `s:${name}`;
  for (const s of graph.stages) g.setNode(id(s.name), { width: size.w, height: size.h });
  groups.forEach((x, i) => {
    g.setNode(`g:${i}`, {});
    for (const name of membersOf(x)) g.setParent(id(name), `g:${i}`);
  });
  graph.links.forEach((l, i) => g.setEdge(id(l.from), id(l.to), { width: 10, height: 18, labelpos: "c" }, String(i)));
  layout(g);
  const frames = groups.map((x) => frameOf(membersOf(x).map((name) => g.node(id(name))), size));
  return {
    size, ...boundsOf(g, frames), groups: frames,
    boxes: graph.stages.map((s) => ({ x: g.node(id(s.name)).x - size.w / 2, y: g.node(id(s.name)).y - size.h / 2 })),
    paths: graph.links.map((l, i) => {
      const e = g.edge(id(l.from), id(l.to), String(i));
      return { d: pathOf(e.points, g.node(id(l.from)), g.node(id(l.to)), size), x: e.x, y: e.y, down: size.dir === "TB" };
    }),
  };
}

// The frame around the boxes of a core group, with a line of text above them.
function frameOf(nodes, size) {
  const x = nodes.map((n) => n.x), y = nodes.map((n) => n.y), pad = size.small ? 8 : 12;
  const left = Math.min(...x) - size.w / 2 - pad, top = Math.min(...y) - size.h / 2 - GROUP_HEAD;
  return { x: left, y: top, w: Math.max(...x) + size.w / 2 + pad - left, h: Math.max(...y) + size.h / 2 + pad + 4 - top };
}

// The drawing without the empty ranks that dagre adds for groups.
function boundsOf(g, frames) {
  const { width, height } = g.graph();
  if (!frames.length) return { left: 0, top: 0, width, height };
  const x = [], y = [];
  for (const v of g.nodes()) {
    const n = g.node(v);
    if (v.startsWith("s:")) x.push(n.x - n.width / 2, n.x + n.width / 2), y.push(n.y - n.height / 2, n.y + n.height / 2);
  }
  for (const e of g.edges()) for (const p of g.edge(e).points) x.push(p.x), y.push(p.y);
  for (const f of frames) x.push(f.x, f.x + f.w), y.push(f.y, f.y + f.h);
  const left = Math.min(...x) - 12, top = Math.min(...y) - 14;
  return { left, top, width: Math.max(...x) + 12 - left, height: Math.max(...y) + 14 - top };
}

// Forward links connect the sides that face each other, with smooth bends through dagre's points;
// backward links follow dagre's points.
function pathOf(points, from, to, size) {
  const down = size.dir === "TB";
  const on = down ? to.y - to.height / 2 > from.y + from.height / 2 : to.x - to.width / 2 > from.x + from.width / 2;
  if (!on) return curve(points);
  const [along, across] = down ? ["y", "x"] : ["x", "y"];
  const [long, wide] = down ? ["height", "width"] : ["width", "height"];
  const port = (node, near, side) => ({ [along]: node[along] + side,
    [across]: node[across] + Math.max(-0.28, Math.min(0.28, (near[across] - node[across]) / (3 * node[wide]))) * node[wide] });
  const inner = points.slice(1, -1);
  const all = [port(from, inner[0] ?? to, from[long] / 2), ...inner, port(to, inner.at(-1) ?? from, -to[long] / 2 - HEAD)];
  const xy = (a, b) => (down ? `${b.toFixed(1)} ${a.toFixed(1)}` : `${a.toFixed(1)} ${b.toFixed(1)}`);
  let d = `M${xy(all[0][along], all[0][across])}`;
  for (let i = 1; i < all.length; i++) {
    const middle = (all[i - 1][along] + all[i][along]) / 2;
    d += `C${xy(middle, all[i - 1][across])} ${xy(middle, all[i][across])} ${xy(all[i][along], all[i][across])}`;
  }
  return d;
}

// A cubic B-spline through the bends that dagre found, straight at both ends.
function curve(points) {
  const p = points.map(({ x, y }) => [x, y]);
  const last = p.at(-1), before = p.at(-2);
  const long = Math.hypot(last[0] - before[0], last[1] - before[1]) || 1;
  const back = Math.min(HEAD, long - 1) / long;
  p[p.length - 1] = [last[0] - (last[0] - before[0]) * back, last[1] - (last[1] - before[1]) * back];
  const xy = ([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`;
  if (p.length === 2) return `M${xy(p[0])}L${xy(p[1])}`;
  const mix = (a, b, t) => [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t];
  let d = `M${xy(p[0])}L${xy(mix(p[0], p[1], 1 / 3))}`;
  for (let i = 1; i < p.length - 1; i++) {
    const into = mix(p[i - 1], p[i], 2 / 3), out = mix(p[i], p[i + 1], 1 / 3);
    const middle = mix(into, out, 0.5);
    d += `${i === 1 ? `L${xy(into)}` : `C${xy(mix(p[i - 1], p[i], 1 / 3))} ${xy(into)} ${xy(middle)}`}`;
    d += `Q${xy(p[i])} ${xy(out)}`;
  }
  return `${d}L${xy(p.at(-1))}`;
}

// ---- core groups ----

// Above the links, one of which may come in from above.
function GroupHead({ g, box, n }) {
  const label = describeGroup(g, n);
  const cores = n?.present || [];
  const bars = cores.length > BARS_MAX ? [{ busy: n.all.busy / cores.length, asleep: cores.some((c) => c.asleep) }] : cores;
  const room = Math.floor((box.w - 40 - 9 * bars.length) / 7.2);
  return (
    <g class="core-group" transform={`translate(${box.x.toFixed(1)} ${box.y.toFixed(1)})`} role="img" aria-label={label} data-group={g.name}>
      <title>{label}</title>
      <text x="14" y="22"><tspan class="core-group-name">{shorten(g.name, Math.max(4, room))}</tspan>
        {room > g.name.length + 4 && <tspan dx="6">{shorten(g.schedule, Math.max(4, room - g.name.length - 3))}</tspan>}</text>
      {bars.map((c, i) => <CoreBar key={i} busy={c.busy} asleep={c.asleep} x={box.w - 14 - 9 * (bars.length - i)} />)}
    </g>
  );
}

function CoreBar({ busy, asleep, x }) {
  const h = 16 * Math.min(1, busy);
  return (
    <g class={asleep ? "asleep" : ""} transform={`translate(${x.toFixed(1)} 9)`}>
      <rect class="core-track" width="7" height="16" />
      <rect class="core-used" width="7" height={h.toFixed(1)} y={(16 - h).toFixed(1)} />
    </g>
  );
}

// ---- links ----

const rateOf = (link, now) =>
  now?.byName.get(link.from)?.links.find((l) => l.outlet === link.outlet && l.to === link.to)?.rate || 0;

function Edge({ link, path, now }) {
  const r = rateOf(link, now);
  const speed = r === 0 ? "none" : r < 100 ? "slow" : r < 10000 ? "mid" : "fast";
  return (
    <g>
      <path d={path.d} class={link.loop ? "edge loop" : "edge"} marker-end="url(#arrow)"
        stroke-width={(1.5 + Math.min(10, 2.2 * Math.log10(1 + r))).toFixed(1)} />
      <path d={path.d} class={`flow flow-${speed}`} />
    </g>
  );
}

function EdgeLabel({ link, path, now, graph }) {
  const named = link.outlet && graph.links.filter((l) => l.from === link.from).length > 1;
  return (
    <text x={path.x} y={path.down ? path.y + 4 : path.y - 10} class="edge-label">
      {`${named ? `${link.outlet} ` : ""}${shortRate(rateOf(link, now))}/s`}
    </text>
  );
}

// ---- boxes ----

function Node({ stage, at, size, s }) {
  const pooled = stage.placement !== "source" && stage.placement !== "inline";
  const state = !s ? "" : s.shed > 0 || s.trouble ? "bad" : s.fill > FULL || s.degradation > 0 || s.ahead > 0 || isSteered(s) ? "warn" : "";
  const label = describe(stage, s, pooled);
  const room = size.small ? 12 : 16;
  return (
    <a href={href("stage", stage.name)} class={`node ${state}`} transform={`translate(${at.x} ${at.y})`} data-stage={stage.name}>
      <g role="img" aria-label={label}>
        <title>{label}</title>
        <rect class="node-box" width={size.w} height={size.h} rx="12" />
        {pooled && s && <Level s={s} size={size} />}
        {pooled ? <Ring s={s} /> : <Place kind={stage.placement} />}
        <text x="58" y="29" class="node-name">{shorten(stage.name, room - 3)}</text>
        <text x="58" y="46" class="node-use">{shorten(stage.placement === "group" ? `${stage.use} · ${stage.group}` : stage.use, room + 2)}</text>
        <text x="14" y="77" class="node-small">{smallText(stage, s, pooled, size.small)}</text>
        <text x={size.w - 14} y="77" class="node-rate end">{s ? `${rate(s.in)}/s` : ""}</text>
        <rect class="node-edge" width={size.w} height={size.h} rx="12" />
        {s && s.shed > 0 && <Badge text={`▼ ${rate(s.shed)}/s shed`} x={size.w} />}
        {s && !(s.shed > 0) && s.degradation > 0 && <Badge text={`▽ ${size.small ? percent(s.degradation) : degraded(s)}`} x={size.w} soft />}
      </g>
    </a>
  );
}

// The fill of the stage's queue, drawn as a level in the box.
function Level({ s, size }) {
  const h = Math.max(s.queue.length > 0 ? 3 : 0, size.h * s.fill);
  return (
    <g clip-path="url(#box)">
      <rect class="level" y={(size.h - h).toFixed(1)} width={size.w} height={h.toFixed(1)} />
      <rect class="level-top" y={(size.h - h).toFixed(1)} width={size.w} height={h > 0 ? 2 : 0} />
    </g>
  );
}

function Ring({ s }) {
  return (
    <g>
      <circle cx="32" cy="34" r={RADIUS} class="ring-track" />
      <circle cx="32" cy="34" r={RADIUS} class="ring" transform="rotate(-90 32 34)"
        stroke-dasharray={`${(RING * (s?.widthShare ?? s?.busyShare ?? 0)).toFixed(1)} ${RING.toFixed(1)}`} />
      <text x="32" y="38.5" class="ring-text">{s ? count(s.width ? s.width.now : s.threads.now) : ""}</text>
    </g>
  );
}

function Place({ kind }) {
  return (
    <g class="place">
      <circle cx="32" cy="34" r={RADIUS} />
      <path d={kind === "source" ? "M24 34H39M33 28l6 6-6 6" : "M26 29h12M26 34h12M26 39h12"} />
    </g>
  );
}

function Badge({ text, x, soft }) {
  const w = 14 + text.length * 6.6;
  return (
    <g class={soft ? "badge soft" : "badge"} transform={`translate(${x - w - 8} -11)`}>
      <rect width={w} height="22" rx="11" />
      <text x={w / 2} y="15">{text}</text>
    </g>
  );
}

// Text at the lower left of the box: trouble, or the state set by an operator, or else the queue.
function smallText(stage, s, pooled, small) {
  if (!s) return pooled ? "" : stage.placement;
  if (s.trouble) return "in trouble";
  if (isSteered(s)) return s.state;
  return pooled ? queueText(s, small) : stage.placement;
}

function describe(stage, s, pooled) {
  const parts = [stage.name, stage.use];
  if (!s) return parts.join(", ");
  parts.push(`${rate(s.in)} events per second`);
  if (s.trouble) parts.push(`in trouble: ${s.trouble}`);
  if (isSteered(s)) parts.push(s.state);
  if (pooled)
    parts.push(`queue ${queueText(s)}`, `${count(s.threads.now)} threads ${percent(s.busyShare)} busy`);
  if (s.width) parts.push(widthText(s));
  if (s.wait.n > 0) parts.push(`99 percent wait at most ${seconds(s.wait.p99)}`);
  if (s.shed > 0) parts.push(`${rate(s.shed)} shed per second`);
  if (s.ahead > 0) parts.push(`${rate(s.ahead)} refused upstream on its behalf per second`);
  if (s.degradation > 0) parts.push(degraded(s));
  return parts.join(", ");
}
