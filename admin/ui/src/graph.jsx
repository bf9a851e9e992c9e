// SPDX-License-Identifier: MIT
// The live graph: layout.js places the boxes, SVG draws them. The width of an arrow shows its rate,
// the level in a box the queue, and the badge the shed rate. The ring shows the busy threads or,
// for a stage that holds events, the used part of the width. Every box is a link to its stage. The
// stages of a group are in a frame, that of a core group with a bar for each core.
//
// The drawing is at most a third of the screen high, whatever the depth of the graph. If it does not
// fit in at a size that can be read, it scrolls in its frame; buttons make it larger and smaller.

import { useEffect, useMemo, useState } from "preact/hooks";
import { count, degraded, percent, queueText, rate, seconds, shorten, shortRate, widthText } from "./format.js";
import { describeGroup } from "./groups.jsx";
import { HEAD, planFor } from "./layout.js";
import { Card } from "./parts.jsx";
import { href } from "./route.js";
import { useWidth } from "./use.js";
import { isSteered } from "./verdict.js";

const SCALE_LEAST = 0.66; // below this, text is hard to read and the drawing scrolls
const SCALE_MOST = 1.12;
const ZOOM = 1.25, ZOOM_MOST = 2, ZOOM_LEAST = 0.15;
const SHARE = 1 / 3; // of the height of the screen; .graph-scroll has the same
const PAD = 2; // above and below the drawing
const BARS_MAX = 16; // of more cores, one bar shows the mean
const RADIUS = 17;
const RING = 2 * Math.PI * RADIUS;
const FULL = 0.8; // a queue filled beyond this share is a warning; the same limit as in verdict.js

// The height in CSS pixels that the drawing may have; it follows the window.
function useRoom() {
  const room = () => Math.floor(innerHeight * SHARE) - 2 * PAD;
  const [height, setHeight] = useState(room());
  useEffect(() => {
    const changed = () => setHeight(room());
    addEventListener("resize", changed);
    return () => removeEventListener("resize", changed);
  }, []);
  return height;
}

// `legend`: how to read it, beside the buttons.
export function GraphCard({ graph, now, legend }) {
  const [box, width] = useWidth();
  const room = useRoom();
  const [zoom, setZoom] = useState(null); // null: as large as fits
  const groups = groupsOf(graph);
  const shape = JSON.stringify([graph.stages.map((s) => [s.name, s.placement]),
    graph.links.map((l) => [l.from, l.outlet, l.to, l.loop]), groups.map((g) => [g.name, g.members])]);
  const plan = useMemo(() => (width ? planFor(graph, groups, width, room) : null), [shape, width, room]);
  useEffect(() => setZoom(null), [shape]);
  const fit = plan ? Math.min(SCALE_MOST, plan.fit) : 1, scale = zoom ?? Math.max(SCALE_LEAST, fit);
  const step = (by) => setZoom(Math.max(ZOOM_LEAST, Math.min(ZOOM_MOST, scale * by)));
  const tools = (
    <div class="graph-tools">
      {legend}
      {scale > 1.01 * fit && <p class="hint">Not all of it is seen: scroll, or press Fit.</p>}
      <div class="zoom" role="group" aria-label="Size of the graph">
        <button type="button" aria-label="Smaller" disabled={scale <= ZOOM_LEAST} onClick={() => step(1 / ZOOM)}>−</button>
        <button type="button" onClick={() => setZoom(fit)}>Fit</button>
        <button type="button" aria-label="Larger" disabled={scale >= ZOOM_MOST} onClick={() => step(ZOOM)}>+</button>
      </div>
    </div>
  );
  return (
    <Card title="Graph" id="graph-title" class="graph-card" tools={tools}>
      <div class="graph-scroll" ref={box} tabIndex={0} role="group" aria-labelledby="graph-title">
        {plan && <Drawing plan={plan} graph={graph} groups={groups} now={now} scale={scale} />}
      </div>
    </Card>
  );
}

function Drawing({ plan, graph, groups, now, scale }) {
  return (
    <svg viewBox={`${plan.left} ${plan.top} ${plan.width} ${plan.height}`} width={Math.round(plan.width * scale)} height={Math.round(plan.height * scale)}
      role="group" aria-label="Stages and the links between them; the table below has the same numbers">
      <defs>
        <marker id="arrow" viewBox="0 0 8 8" refX="1" refY="4" markerWidth={HEAD} markerHeight={HEAD} markerUnits="userSpaceOnUse" orient="auto">
          <path d="M0 0.5L8 4L0 7.5z" class="arrow" />
        </marker>
        <clipPath id="box"><rect width={plan.size.w} height={plan.size.h} rx="12" /></clipPath>
      </defs>
      {plan.frames.map((f, i) => <rect key={i} class={groups[f.group].core ? "core-group-box" : "core-group-box pool"} x={f.x} y={f.y} width={f.w} height={f.h} rx="16" />)}
      {graph.links.map((l, i) => <Edge key={`${l.from} ${l.outlet} ${l.to}`} link={l} path={plan.paths[i]} now={now} />)}
      {plan.frames.map((f, i) => <GroupHead key={i} g={groups[f.group]} box={f} n={now?.groups.find((x) => x.name === groups[f.group].name)} now={now} />)}
      {graph.links.map((l, i) => <EdgeLabel key={`${l.from} ${l.outlet} ${l.to}`} link={l} path={plan.paths[i]} now={now} graph={graph} />)}
      {graph.stages.map((s, i) => <Node key={s.name} stage={s} at={plan.boxes[i]} size={plan.size} s={now?.byName.get(s.name)} />)}
    </svg>
  );
}

// ---- groups ----

// { name, members, core }: the core groups, of which `core` is the server's description, and the pools
// that several stages share.
function groupsOf(graph) {
  const cores = (graph.groups || []).map((g) => ({ name: g.name, core: g, // an older server has none
    members: (g.source ? [g.source] : []).concat(g.stages.map((s) => s.name)) }));
  const pools = new Map();
  for (const s of graph.stages)
    if (s.placement === "group" && !cores.some((g) => g.name === s.group)) pools.set(s.group, [...(pools.get(s.group) || []), s.name]);
  return [...cores, ...[...pools].filter(([, members]) => members.length > 1).map(([name, members]) => ({ name, members, core: null }))];
}

// Above the links, one of which may come in from above.
function GroupHead({ g, box, n, now }) {
  const threads = now?.byName.get(g.members[0])?.threads.now;
  const label = g.core ? describeGroup(g.core, n) : `pool ${g.name}${threads === undefined ? "" : `, ${count(threads)} threads`}, shared by ${g.members.join(", ")}`;
  const cores = n?.present || [];
  const bars = cores.length > BARS_MAX ? [{ busy: n.all.busy / cores.length, asleep: cores.some((c) => c.asleep) }] : cores;
  const room = Math.floor((box.w - 40 - 9 * bars.length) / 7.2), said = g.core ? g.core.schedule : `shared pool${threads === undefined ? "" : `, ${count(threads)} threads`}`;
  return (
    <g class="core-group" transform={`translate(${box.x.toFixed(1)} ${box.y.toFixed(1)})`} role="img" aria-label={label} data-group={g.name}>
      <title>{label}</title>
      <text x="14" y="20"><tspan class="core-group-name">{shorten(g.name, Math.max(4, room))}</tspan>
        {room > g.name.length + 4 && <tspan dx="6">{shorten(said, Math.max(4, room - g.name.length - 3))}</tspan>}</text>
      {bars.map((c, i) => <CoreBar key={i} busy={c.busy} asleep={c.asleep} x={box.w - 14 - 9 * (bars.length - i)} />)}
    </g>
  );
}

function CoreBar({ busy, asleep, x }) {
  const h = 16 * Math.min(1, busy);
  return (
    <g class={asleep ? "asleep" : ""} transform={`translate(${x.toFixed(1)} 7)`}>
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
    <text x={path.x} y={path.on ? path.y + 4 : path.y - 10} class="edge-label">
      {`${named ? `${link.outlet} ` : ""}${shortRate(rateOf(link, now))}/s`}
    </text>
  );
}

// ---- boxes ----

function Node({ stage, at, size, s }) {
  const pooled = stage.placement !== "source" && stage.placement !== "inline";
  const state = !s ? "" : s.shed > 0 || s.trouble ? "bad" : s.fill > FULL || s.degradation > 0 || s.ahead > 0 || isSteered(s) ? "warn" : "";
  const label = describe(stage, s, pooled);
  const room = size.small ? 12 : 16, text = size.flat ? 54 : 58;
  return (
    <a href={href("stage", stage.name)} class={`node ${state}`} transform={`translate(${at.x} ${at.y})`} data-stage={stage.name}>
      <g role="img" aria-label={label}>
        <title>{label}</title>
        <rect class="node-box" width={size.w} height={size.h} rx="12" />
        {pooled && s && <Level s={s} size={size} />}
        <g transform={size.flat ? "translate(-4 -6)" : undefined}>{pooled ? <Ring s={s} /> : <Place kind={stage.placement} />}</g>
        <text x={text} y={size.flat ? 24 : 29} class="node-name">{shorten(stage.name, room - (size.flat ? 1 : 3))}</text>
        {!size.flat && <text x={text} y="46" class="node-use">{shorten(stage.use, room + 2)}</text>}
        {!size.flat && <text x="14" y="77" class="node-small">{smallText(stage, s, pooled, size.small)}</text>}
        {size.flat ? <text x={text} y="43" class="node-rate">{!s ? "" : s.trouble || isSteered(s) ? smallText(stage, s, pooled, true) : `${shortRate(s.in)}/s`}</text>
          : <text x={size.w - 14} y="77" class="node-rate end">{s ? `${rate(s.in)}/s` : ""}</text>}
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
