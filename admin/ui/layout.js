// SPDX-License-Identifier: MIT
// Where the nodes of the graph go: layers by depth, order within a layer by the mean place of what
// leads there (Sugiyama's barycentres), and a free lane for links that pass a layer.
//
// Pure: takes { stages, links } and the room there is, returns boxes and paths in SVG units.

// Ways to draw it, the preferred first: to the right or down, with large or small nodes.
const SIZES = [
  { w: 196, h: 100, alongGap: 84, acrossGap: 26, lane: 12, loops: 34, down: false, small: false },
  { w: 164, h: 100, alongGap: 68, acrossGap: 26, lane: 12, loops: 34, down: false, small: true },
  { w: 196, h: 100, alongGap: 54, acrossGap: 26, lane: 12, loops: 34, down: true, small: false },
  { w: 138, h: 100, alongGap: 50, acrossGap: 12, lane: 4, loops: 24, down: true, small: true },
];
const SCALE_GOOD = 0.85; // below, text becomes hard to read and another way is tried

const MARGIN = 11; // room for badges and rings of focus
const HEAD = 7; // length of an arrow head

export function layout(graph, width) {
  const plans = SIZES.map((size) => draw(graph, size));
  return plans.find((p) => width / p.width >= SCALE_GOOD) ||
    plans.reduce((best, p) => (p.width < best.width ? p : best));
}

function draw(graph, size) {
  const depth = 1 + Math.max(0, ...graph.stages.map((s) => s.depth));
  const { layers, nodes, chains } = place(graph, depth);
  sortLayers(layers);
  const across = setAcross(layers, size);
  const along = depth * (size.down ? size.h : size.w) + (depth - 1) * size.alongGap;
  for (const layer of layers) for (const item of layer) setPoint(item, size);
  const loopRoom = graph.links.some((l) => isLoop(l, nodes)) ? size.loops : 0;
  return {
    size,
    width: (size.down ? across + loopRoom : along) + 2 * MARGIN,
    height: (size.down ? along : across + loopRoom) + 2 * MARGIN,
    boxes: [...nodes.values()].map((n) => ({ name: n.name, x: n.x, y: n.y })),
    paths: route(graph, nodes, chains, size, across),
  };
}

const isLoop = (l, nodes) => l.loop || nodes.get(l.to).layer <= nodes.get(l.from).layer;

function place(graph, depth) {
  const layers = Array.from({ length: depth }, () => []);
  const nodes = new Map();
  for (const s of graph.stages) {
    const node = { name: s.name, layer: s.depth, from: [], lane: false };
    nodes.set(s.name, node);
    layers[s.depth].push(node);
  }
  const chains = graph.links.map((l) => chainOf(l, nodes, layers));
  return { layers, nodes, chains };
}

// The items a link passes: from, a lane in every layer between, to.
function chainOf(link, nodes, layers) {
  const from = nodes.get(link.from), to = nodes.get(link.to);
  const chain = [from];
  if (isLoop(link, nodes)) return [from, to];
  for (let d = from.layer + 1; d < to.layer; d++) {
    const lane = { layer: d, from: [chain.at(-1)], lane: true };
    layers[d].push(lane);
    chain.push(lane);
  }
  to.from.push(chain.at(-1));
  return [...chain, to];
}

function sortLayers(layers) {
  for (const layer of layers) {
    layer.forEach((item, i) => {
      item.rank = item.from.length ? item.from.reduce((sum, f) => sum + f.order, 0) / item.from.length : i;
    });
    layer.sort((a, b) => a.rank - b.rank);
    layer.forEach((item, i) => { item.order = (i + 0.5) / layer.length; });
  }
}

// Centre every layer on the widest one; returns the extent.
function setAcross(layers, size) {
  const node = size.down ? size.w : size.h;
  const extent = (item) => (item.lane ? size.lane : node);
  const gap = (a, b) => (b ? (a.lane || b.lane ? size.acrossGap / 2 : size.acrossGap) : 0);
  const length = (layer) => layer.reduce((sum, item, i) => sum + extent(item) + gap(item, layer[i + 1]), 0);
  const widest = Math.max(...layers.map(length));
  for (const layer of layers) {
    let at = (widest - length(layer)) / 2;
    layer.forEach((item, i) => {
      item.across = at;
      item.extent = extent(item);
      at += item.extent + gap(item, layer[i + 1]);
    });
  }
  return widest;
}

function setPoint(item, size) {
  const along = item.layer * ((size.down ? size.h : size.w) + size.alongGap);
  item.x = MARGIN + (size.down ? item.across : along);
  item.y = MARGIN + (size.down ? along : item.across);
}

// ---- links ----

function route(graph, nodes, chains, size, across) {
  const forward = chains.filter((c, i) => !isLoop(graph.links[i], nodes));
  const out = ports(forward, 0, 1, size);
  const into = ports(forward, -1, -2, size);
  return graph.links.map((l, i) => (isLoop(l, nodes)
    ? loopPath(chains[i][0], chains[i].at(-1), size, across)
    : chainPath(chains[i], out.get(chains[i]), into.get(chains[i]), size)));
}

// Ports are spread over the side of a node, in the order of where they lead.
function ports(chains, end, next, size) {
  const byNode = new Map();
  for (const chain of chains) {
    const node = chain.at(end);
    byNode.set(node, [...(byNode.get(node) || []), chain]);
  }
  const port = new Map();
  const length = size.down ? size.w : size.h;
  for (const list of byNode.values()) {
    list.sort((a, b) => a.at(next).across - b.at(next).across);
    list.forEach((chain, i) => port.set(chain, { at: (length * (i + 1)) / (list.length + 1), i, n: list.length }));
  }
  return port;
}

function chainPath(chain, out, into, size) {
  const reach = size.down ? size.h : size.w;
  const points = chain.map((item, i) => {
    const side = item.lane ? item.extent / 2 : i === 0 ? out.at : into.at;
    return size.down ? { a: item.y, b: item.x + side } : { a: item.x, b: item.y + side };
  });
  const xy = (a, b) => (size.down ? `${b} ${a}` : `${a} ${b}`);
  let d = `M${xy(points[0].a + reach, points[0].b)}`;
  for (let i = 1; i < points.length; i++) {
    const last = i === points.length - 1;
    const start = points[i - 1].a + reach, end = points[i].a - (last ? HEAD : 0);
    const mid = (start + end) / 2;
    d += `C${xy(mid, points[i - 1].b)} ${xy(mid, points[i].b)} ${xy(end, points[i].b)}`;
    if (!last) d += `L${xy(points[i].a + reach, points[i].b)}`;
  }
  // Labels side by side would run into each other where links run down: every other one sits lower.
  const share = size.down && out.n > 1 ? (out.i % 2 ? 0.68 : 0.2) : 0.46;
  const a = points[0].a + reach + size.alongGap * share;
  const b = points[0].b + (points[1].b - points[0].b) * share;
  return { d, loop: false, x: size.down ? b : a, y: size.down ? a : b };
}

// Around the outside: below the graph, or to the right of it when it runs down.
function loopPath(from, to, size, across) {
  const edge = MARGIN + across + size.loops - 14;
  if (size.down) {
    const y = from.y + size.h / 2 + 12, toY = to.y + size.h / 2 - 12;
    return { d: `M${from.x + size.w} ${y}C${edge + 8} ${y} ${edge + 8} ${toY} ${to.x + size.w + HEAD} ${toY}`,
      loop: true, x: edge - 4, y: (y + toY) / 2 };
  }
  const x = from.x + size.w / 2 + 12, toX = to.x + size.w / 2 - 12;
  return { d: `M${x} ${from.y + size.h}C${x} ${edge + 12} ${toX} ${edge + 12} ${toX} ${to.y + size.h + HEAD}`,
    loop: true, x: (x + toX) / 2, y: edge + 4 };
}
