// SPDX-License-Identifier: MIT
// The live graph: drawn once per shape and orientation, then only numbers and lengths change, so
// that focus stays where it is.

import { count, degraded, rate, seconds, setAttr, setText, shortRate, svg } from "/format.js";
import { layout } from "/layout.js";

const RADIUS = 15;
const RING = 2 * Math.PI * RADIUS;
const FULL = 0.8; // from this share of the limit a queue is drawn as a warning

export class GraphView {
  constructor(box, onChoose) {
    this.box = box;
    this.onChoose = onChoose;
    this.shape = "";
    this.graph = null;
    this.now = null;
    new ResizeObserver(() => this.draw()).observe(box);
  }

  update(graph, now) {
    this.graph = graph;
    this.now = now;
    this.draw();
  }

  draw() {
    if (!this.graph) return;
    const width = this.box.clientWidth;
    const shape = shapeOf(this.graph);
    if (shape !== this.shape || width !== this.width) {
      const plan = layout(this.graph, width);
      if (shape !== this.shape || plan.size !== this.plan.size) this.build(plan);
      this.shape = shape;
      this.width = width;
    }
    this.fit(width);
    if (this.now) this.refresh();
  }

  // Shrink to the card, but not below what can be read; beyond that the card scrolls.
  fit(width) {
    const scale = Math.max(0.72, Math.min(1.2, (width - 2) / this.plan.width));
    setAttr(this.root, "width", Math.round(this.plan.width * scale));
    setAttr(this.root, "height", Math.round(this.plan.height * scale));
  }

  build(plan) {
    this.plan = plan;
    const focused = document.activeElement?.getAttribute("data-stage");
    const fanOut = (link) => this.graph.links.filter((l) => l.from === link.from).length;
    this.links = this.graph.links.map((l, i) => new Link(l, plan.paths[i], fanOut(l) > 1, plan.size.down));
    this.nodes = this.graph.stages.map((s, i) => new Node(s, plan.boxes[i], plan.size, this.onChoose));
    this.root = svg("svg", { viewBox: `0 0 ${plan.width} ${plan.height}`, role: "group",
      "aria-label": "Stages and the links between them; the table below has the same numbers" },
      arrowHead(), ...this.links.map((l) => l.root), ...this.links.map((l) => l.label),
      ...this.nodes.map((n) => n.root));
    this.box.replaceChildren(this.root);
    if (focused) this.nodes.find((n) => n.name === focused)?.root.focus();
  }

  refresh() {
    for (const n of this.nodes) n.refresh(this.now.byName.get(n.name));
    for (const l of this.links) l.refresh(this.now.byName.get(l.from));
  }
}

function shapeOf(graph) {
  return JSON.stringify([graph.stages.map((s) => [s.name, s.use, s.depth, s.placement, s.group]),
    graph.links.map((l) => [l.from, l.outlet, l.to, l.loop])]);
}

function arrowHead() {
  return svg("defs", {},
    svg("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 1, refY: 4, markerWidth: 8, markerHeight: 8,
      markerUnits: "userSpaceOnUse", orient: "auto" }, svg("path", { d: "M0 0L8 4L0 8z", class: "arrow" })));
}

// ---- links ----

class Link {
  constructor(link, path, isNamed, isDown) {
    this.outlet = link.outlet;
    this.to = link.to;
    this.from = link.from;
    this.name = isNamed && link.outlet ? link.outlet + " " : "";
    this.line = svg("path", { d: path.d, class: path.loop ? "edge loop" : "edge", "marker-end": "url(#arrow)" });
    this.flow = svg("path", { d: path.d, class: "flow" });
    // Above a line that runs across: on it, the dots before a number read as its minus sign.
    this.label = svg("text", { x: path.x, y: path.y + (isDown ? 4 : -9), class: "edge-label" });
    this.root = svg("g", {}, this.line, this.flow);
  }

  refresh(stage) {
    const r = stage?.links.find((l) => l.outlet === this.outlet && l.to === this.to)?.rate || 0;
    setAttr(this.line, "stroke-width", (1.5 + Math.min(9, 2 * Math.log10(1 + r))).toFixed(1));
    setAttr(this.flow, "class", `flow flow-${r === 0 ? "none" : r < 100 ? "slow" : r < 10000 ? "mid" : "fast"}`);
    setText(this.label, `${this.name}${shortRate(r)}/s`);
  }
}

// ---- nodes ----

class Node {
  constructor(stage, box, size, onChoose) {
    this.name = stage.name;
    this.pooled = stage.placement !== "source" && stage.placement !== "inline";
    this.w = size.w;
    this.small = size.small;
    this.title = svg("title", {});
    this.rate = svg("text", { x: 12, y: 61, class: "node-rate" });
    this.worse = svg("text", { x: this.w - 12, y: 61, class: "node-worse end" });
    this.root = svg("g", { class: "node", transform: `translate(${box.x} ${box.y})`, tabindex: 0,
      role: "button", "data-stage": stage.name, onclick: () => onChoose(stage.name),
      onkeydown: (e) => this.key(e, onChoose) },
      this.title,
      svg("rect", { class: "node-box", width: size.w, height: size.h, rx: 10 }),
      svg("text", { x: 12, y: 25, class: "node-name" }, cut(stage.name, this.w < 150 ? 10 : this.small ? 12 : 16)),
      svg("text", { x: 12, y: 41, class: "node-use" }, cut(runs(stage), this.w < 150 ? 11 : this.small ? 15 : 20)),
      this.rate, this.worse, this.pooled ? this.threads() : "", this.pooled ? this.queue() : this.place(stage), this.badge());
  }

  key(e, onChoose) {
    if (e.key !== "Enter" && e.key !== " ") return;
    e.preventDefault();
    onChoose(this.name);
  }

  threads() {
    const at = { cx: this.w - 28, cy: 31, r: RADIUS };
    this.ring = svg("circle", { ...at, class: "ring", transform: `rotate(-90 ${at.cx} ${at.cy})` });
    this.ringText = svg("text", { x: at.cx, y: 35, class: "ring-text" });
    return svg("g", {}, svg("circle", { ...at, class: "ring-track" }), this.ring, this.ringText);
  }

  queue() {
    const at = { x: 12, y: 70, height: 7, rx: 3.5 };
    this.length = svg("text", { x: 12, y: 91, class: "node-small" });
    this.slow = svg("text", { x: this.w - 12, y: 91, class: "node-small end" });
    this.bar = svg("rect", { ...at, width: 0, class: "queue-bar" });
    return svg("g", {}, svg("rect", { ...at, width: this.w - 24, class: "queue-track" }), this.bar,
      this.length, this.slow);
  }

  place(stage) {
    const text = stage.placement === "source" ? "source" : this.small ? "inline" : "inline, in its caller's thread";
    return svg("text", { x: 12, y: 88, class: "node-small" }, text);
  }

  badge() {
    this.badgeText = svg("text", { x: this.w - 57, y: 4, class: "badge-text" });
    this.badgeBox = svg("g", { class: "badge", display: "none" },
      svg("rect", { x: this.w - 110, y: -10, width: 106, height: 20, rx: 10 }), this.badgeText);
    return this.badgeBox;
  }

  refresh(s) {
    if (!s) return;
    setText(this.rate, `${rate(s.in)}/s`);
    setText(this.worse, worse(s, this.small));
    if (this.pooled) this.refreshPool(s);
    setAttr(this.badgeBox, "display", s.shed > 0 ? "inline" : "none");
    setText(this.badgeText, `▼ ${rate(s.shed)}/s shed`);
    setAttr(this.root, "class", `node ${s.shed > 0 ? "bad" : s.fill > FULL || s.degradation > 0 || s.ahead > 0 ? "warn" : ""}`);
    const label = describe(s, this.pooled);
    setAttr(this.root, "aria-label", label);
    setText(this.title, label);
  }

  refreshPool(s) {
    const length = Math.max(s.queue.length > 0 ? 4 : 0, (this.w - 24) * s.fill);
    const p99 = Math.max(s.wait.p99 || 0, s.service.p99 || 0);
    setAttr(this.bar, "width", length.toFixed(1));
    setText(this.length, this.small ? count(s.queue.length) : `${count(s.queue.length)} of ${count(s.queue.limit)}`);
    setText(this.slow, s.wait.n + s.service.n > 0 ? `p99 ${seconds(p99)}` : "");
    setAttr(this.ring, "stroke-dasharray", `${(RING * s.busyShare).toFixed(1)} ${RING.toFixed(1)}`);
    setText(this.ringText, String(s.threads.now));
  }
}

const cut = (text, n) => (text.length > n ? text.slice(0, n - 1) + "…" : text);

const worse = (s, small) => (s.degradation > 0 ? `▽ ${small ? `${Math.round(100 * s.degradation)} %` : degraded(s)}` : "");

const runs = (s) => (s.placement === "group" ? `${s.use} · ${s.group}` : s.use);

function describe(s, pooled) {
  const parts = [s.name, s.use, `${rate(s.in)} events per second`];
  if (pooled)
    parts.push(`queue ${count(s.queue.length)} of ${count(s.queue.limit)}`,
      `${s.threads.busy} of ${s.threads.now} threads busy`);
  if (s.shed > 0) parts.push(`${rate(s.shed)} shed per second`);
  if (s.ahead > 0) parts.push(`${rate(s.ahead)} refused ahead of it per second`);
  if (s.degradation > 0) parts.push(degraded(s));
  return parts.join(", ");
}
