// SPDX-License-Identifier: MIT
// Places the boxes, frames and arrows of the graph: dagre computes the layers. A deep graph is wrapped:
// its layers are cut into rows, one below the other, as words are into lines.
//
// A plan is { size, left, top, width, height, fit, boxes, frames, paths }: boxes and paths in the order of
// the graph's stages and links. `fit` is the scale at which it fills the room.

import { graphlib, layout } from "@dagrejs/dagre";

export const HEAD = 8; // length of an arrow's head

// Sizes of boxes in order of preference. A flat box has two lines of text instead of three.
const LARGE = { w: 198, h: 92, ranksep: 92, nodesep: 26, roomy: true };
const MEDIUM = { w: 168, h: 92, ranksep: 76, nodesep: 22, small: true };
const FLAT = { w: 156, h: 56, ranksep: 64, nodesep: 16, small: true, flat: true };
const SIZES = [LARGE, MEDIUM, FLAT];
const SCALE_GOOD = 0.86; // from this scale on, larger boxes are preferred to a better fit
const GROUP_HEAD = 34; // height of the text above the stages of a group
const ROW_GAP = 40; // between two rows: room for the arrows that go from one to the next
const MARGIN = 14;

// The plan for `width` x `height` pixels. Of plans that can be read, the first; else the one with the largest scale.
export function planFor(graph, groups, width, height) {
  const fitted = (plan) => ({ ...plan, fit: Math.min((width - 2) / plan.width, height / plan.height) });
  let best = null;
  for (const size of SIZES) {
    const flat = place(graph, groups, size);
    for (let rows = 1; rows <= flat.ranks.length; rows++) {
      const plan = fitted(wrap(graph, groups, size, flat, rows));
      if (plan.fit >= SCALE_GOOD) return plan;
      if (!best || plan.fit > best.fit * 1.02) best = plan;
      if (plan.fit * plan.height >= height - 1) break; // more rows make it only higher
    }
  }
  return best;
}

// dagre's layout in one row, from left to right: { node: Map by stage, edges, ranks: [[names]] }.
function place(graph, groups, size) {
  const g = new graphlib.Graph({ multigraph: true, compound: true });
  const more = groups.length ? GROUP_HEAD : 0; // room for the frames of groups
  g.setGraph({ rankdir: "LR", ranksep: size.ranksep, nodesep: size.nodesep + more, edgesep: 18, marginx: 0, marginy: 0 });
  g.setDefaultEdgeLabel(() => ({}));
  // a prefix, since dagre uses ids as keys of plain objects, which have a member "constructor"
  const id = (name) => `s:${name}`;
  for (const s of graph.stages) g.setNode(id(s.name), { width: size.w, height: size.h });
  groups.forEach((x, i) => {
    g.setNode(`g:${i}`, {});
    for (const name of x.members) g.setParent(id(name), `g:${i}`);
  });
  graph.links.forEach((l, i) => g.setEdge(id(l.from), id(l.to), { width: 10, height: 18, labelpos: "c" }, String(i)));
  layout(g);
  const node = new Map(graph.stages.map((s) => [s.name, g.node(id(s.name))]));
  const ranks = [...Map.groupBy(graph.stages.map((s) => s.name), (name) => Math.round(node.get(name).x))].sort((a, b) => a[0] - b[0]).map(([, names]) => names);
  return { node, ranks, edges: graph.links.map((l, i) => g.edge(id(l.from), id(l.to), String(i))) };
}

// Cut the layers of `flat` into `rows` rows of about equally many layers, and move each row to the left margin, below the one before.
function wrap(graph, groups, size, flat, rows) {
  const each = Math.ceil(flat.ranks.length / rows);
  const rowOf = new Map(flat.ranks.flatMap((names, r) => names.map((name) => [name, Math.floor(r / each)])));
  const moves = movesOf(flat, rowOf, size, groups);
  const at = (name) => {
    const n = flat.node.get(name), m = moves[rowOf.get(name)];
    return { x: n.x - m.x, y: n.y - m.y, width: n.width, height: n.height };
  };
  const frames = framesOf(groups, rowOf, at, size);
  const paths = graph.links.map((l, i) => {
    const from = rowOf.get(l.from), to = rowOf.get(l.to), m = moves[from];
    return from === to ? inRow(flat.edges[i], m, at(l.from), at(l.to)) : acrossRows(at(l.from), at(l.to), moves[Math.max(from, to)].top);
  });
  const boxes = graph.stages.map((s) => ({ x: at(s.name).x - size.w / 2, y: at(s.name).y - size.h / 2 }));
  return { size, boxes, frames, paths, ...boundsOf(boxes, size, frames, paths.flatMap((p) => p.points)) };
}

// How far the boxes of each row move, and where the room above the row begins: [{ x, y, top }]. The top of a row has
// room for the heads of frames.
function movesOf(flat, rowOf, size, groups) {
  const rows = Map.groupBy([...rowOf.keys()], (name) => rowOf.get(name));
  let below = 0;
  return [...rows].sort((a, b) => a[0] - b[0]).map(([, names]) => {
    const nodes = names.map((name) => flat.node.get(name));
    const left = Math.min(...nodes.map((n) => n.x)) - size.w / 2, top = Math.min(...nodes.map((n) => n.y)) - size.h / 2;
    const head = groups.some((g) => g.members.some((name) => names.includes(name))) && below > 0 ? GROUP_HEAD : 0;
    const move = { x: left, y: top - below - head, top: below - ROW_GAP };
    below += head + Math.max(...nodes.map((n) => n.y)) + size.h / 2 - top + ROW_GAP;
    return move;
  });
}

// The frames around the boxes of the groups, with a line of text above them; of a group in several rows, one for each: [{ group, x, y, w, h }].
function framesOf(groups, rowOf, at, size) {
  const pad = size.small ? 8 : 12;
  return groups.flatMap((g, i) => [...Map.groupBy(g.members, (name) => rowOf.get(name)).values()].map((names) => {
    const x = names.map((n) => at(n).x), y = names.map((n) => at(n).y);
    const left = Math.min(...x) - size.w / 2 - pad, top = Math.min(...y) - size.h / 2 - GROUP_HEAD;
    return { group: i, x: left, y: top, w: Math.max(...x) + size.w / 2 + pad - left, h: Math.max(...y) + size.h / 2 + pad - top };
  }));
}

function boundsOf(boxes, size, frames, points) {
  const x = [], y = [];
  for (const b of boxes) x.push(b.x, b.x + size.w), y.push(b.y, b.y + size.h);
  for (const p of points) x.push(p.x), y.push(p.y);
  for (const f of frames) x.push(f.x, f.x + f.w), y.push(f.y, f.y + f.h);
  const left = Math.min(...x) - MARGIN, top = Math.min(...y) - MARGIN;
  return { left, top, width: Math.max(...x) + MARGIN - left, height: Math.max(...y) + MARGIN - top };
}

function inRow(edge, move, from, to) {
  const points = edge.points.map((p) => ({ x: p.x - move.x, y: p.y - move.y }));
  return { d: pathOf(points, from, to), x: edge.x - move.x, y: edge.y - move.y, points };
}

// An arrow from a box to one in another row: out at the right, between the rows above the lower one, where the room
// begins at `top`, and in from the left.
function acrossRows(from, to, top) {
  const turn = 24;
  const a = { x: from.x + from.width / 2, y: from.y }, b = { x: to.x - to.width / 2 - HEAD, y: to.y };
  const between = top + ROW_GAP / 2;
  const d = `M${xy(a.x, a.y)}C${xy(a.x + turn, a.y)} ${xy(a.x + turn, between)} ${xy(a.x, between)}L${xy(b.x, between)}C${xy(b.x - turn, between)} ${xy(b.x - turn, b.y)} ${xy(b.x, b.y)}`;
  return { d, x: (a.x + b.x) / 2, y: between, on: true, points: [{ x: a.x + turn, y: a.y }, { x: b.x - turn, y: between }] };
}

const xy = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

// Forward links connect the sides that face each other, with smooth bends through dagre's points;
// backward links follow dagre's points.
function pathOf(points, from, to) {
  if (!(to.x - to.width / 2 > from.x + from.width / 2)) return curve(points);
  const port = (node, near, side) => ({ x: node.x + side, y: node.y + Math.max(-0.28, Math.min(0.28, (near.y - node.y) / (3 * node.height))) * node.height });
  const inner = points.slice(1, -1);
  const all = [port(from, inner[0] ?? to, from.width / 2), ...inner, port(to, inner.at(-1) ?? from, -to.width / 2 - HEAD)];
  let d = `M${xy(all[0].x, all[0].y)}`;
  for (let i = 1; i < all.length; i++) {
    const middle = (all[i - 1].x + all[i].x) / 2;
    d += `C${xy(middle, all[i - 1].y)} ${xy(middle, all[i].y)} ${xy(all[i].x, all[i].y)}`;
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
  const to = ([x, y]) => xy(x, y);
  if (p.length === 2) return `M${to(p[0])}L${to(p[1])}`;
  const mix = (a, b, t) => [a[0] + (b[0] - a[0]) * t, a[1] + (b[1] - a[1]) * t];
  let d = `M${to(p[0])}L${to(mix(p[0], p[1], 1 / 3))}`;
  for (let i = 1; i < p.length - 1; i++) {
    const into = mix(p[i - 1], p[i], 2 / 3), out = mix(p[i], p[i + 1], 1 / 3);
    const middle = mix(into, out, 0.5);
    d += `${i === 1 ? `L${to(into)}` : `C${to(mix(p[i - 1], p[i], 1 / 3))} ${to(into)} ${to(middle)}`}`;
    d += `Q${to(p[i])} ${to(out)}`;
  }
  return `${d}L${to(p.at(-1))}`;
}
