// SPDX-License-Identifier: MIT
// The page as a whole: ask the server once a second, hand the answer to each part.
//
// While the server does not answer the page says so, keeps the last numbers (marked as stale) and
// goes on asking; it recovers by itself, also when another server has taken the place.

import { clock, count, el, rate, seconds, setAttr, setText, span, svg, NONE } from "/format.js";
import { Detail } from "/detail.js";
import { GraphView } from "/graph.js";
import { Model } from "/model.js";
import { StagesTable } from "/stages.js";
import { verdict } from "/verdict.js";

const POLL_MS = 1000;
const PATIENCE_MS = 4000;
const STALE_MS = 3000; // without an answer for so long the numbers are marked
const FEED = 40;

const MARKS = {
  ok: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm-1.2 14.6L6.4 12.2l1.7-1.7 2.7 2.7 5.1-5.1 1.7 1.7z",
  warn: "M12 2.5L1.5 21h21zM11 9h2v6h-2zm0 7.5h2v2h-2z",
  bad: "M7.5 2h9L22 7.5v9L16.5 22h-9L2 16.5v-9zM11 6.5h2v7h-2zm0 8.8h2v2h-2z",
  wait: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm1 10.4l3.6 2.1-1 1.7-4.6-2.7V6h2z",
};

const $ = (id) => document.getElementById(id);

const model = new Model();
const detail = new Detail($("detail"));
const graphView = new GraphView($("graph"), choose);
const table = new StagesTable($("stages-table"), choose);

let newest = null; // what Model.now() said last
let answeredAt = 0; // performance.now() of the last answer
let decisionsSeen = -1;

// ---- asking ----

async function get(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

async function poll() {
  try {
    const [graph, stages, overload] = await Promise.all(
      [get("/api/v1/graph"), get("/api/v1/stages"), get("/api/v1/overload")]);
    answeredAt = performance.now();
    showMode(overload.mode);
    model.add(stages);
    show(graph, model.now());
    if (graph.decisions_total !== decisionsSeen) {
      showFeed((await get(`/api/v1/decisions?n=${FEED}`)).decisions);
      decisionsSeen = graph.decisions_total;
    }
  } catch (e) {
    console.debug(e);
    decisionsSeen = -1; // the next server may have others
  }
  showLink();
  setTimeout(poll, POLL_MS);
}

// ---- showing ----

function show(graph, now) {
  setText($("server-name"), graph.name);
  setText($("uptime"), `up ${span(graph.uptime_seconds)}`);
  document.title = `${graph.name} · weir`;
  showVerdict(verdict(graph, now));
  graphView.update(graph, now);
  if (!now) return;
  newest = now;
  showTiles(now);
  table.update(now);
  detail.update(now);
}

function showVerdict({ level, text }) {
  setAttr($("verdict"), "data-level", level);
  setAttr($("verdict-path"), "d", MARKS[level]);
  setText($("verdict-text"), text);
}

// The kill switch, where it is not as it should be.
const MODES = {
  shadow: "Overload control is in shadow mode: what it would refuse is let in and counted.",
  off: "Overload control is switched off: nothing is refused but by full queues and deadlines.",
};

function showMode(mode) {
  $("mode").hidden = !MODES[mode];
  if (!MODES[mode]) return;
  setText($("mode"), `overload: ${mode}`);
  setAttr($("mode"), "title", MODES[mode]);
}

function showLink() {
  const silent = performance.now() - answeredAt;
  const stale = answeredAt === 0 ? performance.now() > STALE_MS : silent > STALE_MS;
  document.body.classList.toggle("stale", stale);
  setAttr($("link"), "data-state", stale ? "stale" : answeredAt ? "live" : "wait");
  if (!stale) setText($("link"), answeredAt ? "live" : "connecting");
  else setText($("link"), answeredAt ? `stale for ${span(silent / 1000)}` : "no answer");
  if (stale)
    showVerdict({ level: "wait", text: answeredAt
      ? "No answer from the server. These are its last numbers; asking again every second."
      : "No answer from the server. Asking again every second." });
}

// ---- the four big numbers ----

const TILES = [
  { key: "requests", name: "Requests", unit: "/s", value: (n) => rate(n.all.requests), note: (n) => `${count(n.stages.length)} stages` },
  { key: "shed", name: "Shed", unit: "/s", value: (n) => rate(n.all.shed), alarm: (n) => n.all.shed > 0,
    note: (n) => [n.all.shadow > 0 && `plus ${rate(n.all.shadow)}/s in shadow mode`,
      n.all.failed > 0 ? `${rate(n.all.failed)}/s failed` : "none failed"].filter(Boolean).join(", ") },
  { key: "inFlight", name: "In flight", unit: "", value: (n) => count(n.all.inFlight),
    note: (n) => `${count(n.stages.reduce((sum, s) => sum + s.queue.length, 0))} waiting in queues` },
  { key: "slow", name: "Slowest p99", unit: "", value: (n) => (n.all.slowest ? seconds(n.all.slowest.p99) : NONE),
    note: (n) => (n.all.slowest ? `${n.all.slowest.part} at ${n.all.slowest.name}` : "nothing measured lately") },
];

function makeTiles() {
  for (const t of TILES) {
    t.big = el("span", {}, NONE);
    t.small = el("p", { class: "tile-note" });
    t.line = svg("path", { class: "spark-line" });
    t.area = svg("path", { class: "spark-area" });
    t.root = el("div", { class: "tile" }, el("h2", {}, t.name),
      el("p", { class: "tile-value" }, t.big, t.unit ? el("small", {}, t.unit) : null), t.small,
      svg("svg", { class: "spark", viewBox: "0 0 100 28", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("path", { class: "spark-base", d: "M0 26H100" }), t.area, t.line));
    $("tiles").append(t.root);
  }
}

function showTiles(now) {
  for (const t of TILES) {
    setText(t.big, t.value(now));
    setText(t.small, t.note(now));
    t.root.classList.toggle("alarm", Boolean(t.alarm && t.alarm(now)));
    spark(t, model.points.map((p) => p[t.key]));
  }
}

// The newest point is at the right edge; a page that was just opened fills from there.
function spark(t, values) {
  const max = Math.max(...values, 1e-9);
  const x = (i) => (100 - (values.length - 1 - i) * (100 / 89)).toFixed(1);
  const y = (v) => (26 - 23 * (v / max)).toFixed(1);
  const line = values.map((v, i) => `${i ? "L" : "M"}${x(i)} ${y(v)}`).join("");
  setAttr(t.line, "d", line);
  setAttr(t.area, "d", `${line}L100 28L${x(0)} 28Z`);
}

// ---- decisions ----

function showFeed(decisions) {
  const items = decisions.map((d) => el("li", {},
    el("time", { datetime: new Date(d.time * 1000).toISOString() }, clock(d.time)),
    el("p", { class: "what" }, el("b", {}, d.stage), ` ${what(d)}`, el("span", { class: "actor" }, d.actor)),
    el("p", { class: "why" }, [d.rule, d.limit && `limit: ${d.limit}`].filter(Boolean).join(" · ")),
    d.inputs ? el("p", { class: "inputs" }, d.inputs) : null));
  $("feed").replaceChildren(...(items.length ? items : [el("li", { class: "empty" }, "Nothing has been decided yet.")]));
}

function what(d) {
  const action = d.action.replaceAll("_", " ");
  if (d.from === d.to) return action;
  return `${d.from} → ${d.to} threads (${action})`;
}

// ---- one stage ----

function choose(name) {
  location.hash = `stage/${encodeURIComponent(name)}`;
}

function followHash() {
  const match = /^#stage\/(.+)$/.exec(location.hash);
  if (!match) {
    if (detail.name) detail.close();
    return;
  }
  detail.choose(decodeURIComponent(match[1]));
  if (newest) detail.update(newest);
  $("detail").scrollIntoView({ block: "nearest" });
  $("detail").focus({ preventScroll: true });
}

addEventListener("hashchange", followHash);
makeTiles();
poll();
followHash();
