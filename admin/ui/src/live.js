// SPDX-License-Identifier: MIT
// What the page knows of the server, as signals, and how it comes to know it.
//
// /api/v1/stages is asked all the time: every number of the tables and of the graph comes from
// differences of its totals. Where the server has /events, ticks, decisions and acts come from there, and
// the asking is slower; one tab of a browser holds the connection (a Web Lock says which) and passes
// what comes on to the others. Where it has not, samples are computed from the same differences.
//
// While the server does not answer the page says so, keeps the last numbers (marked as stale) and
// goes on asking; it recovers by itself, also when another server has taken the place.

import { batch, computed, signal } from "@preact/signals";
import { get } from "./api.js";
import { Model } from "./model.js";
import { append, emptyFrame, fromHistory, joined } from "./series.js";

const POLL_MS = 1000;
const POLL_SLOW_MS = 2000; // with /events
const GRAPH_EVERY = 5; // polls between looks at the graph, with /events
const STALE_MS = 3500; // without an answer for so long the numbers are marked
const SILENT_MS = 6000; // without a tick for so long the stream is not relied upon
const BEGAN_S = 3; // starts further apart than this are those of two servers; clocks are set by less
const OUTCOME_S = 45; // what came of a decision is known so long after it
const KEEP_ROWS = 900;
const DECISIONS = 200;
const ACTS = 100;

export const graph = signal(null);
export const now = signal(null); // Model.now()
export const tick = signal(null); // the newest event `tick`
export const mode = signal("enforce");
export const decisions = signal(null);
export const acts = signal(null); // null: not read; []: none, or the server has no list of them
export const routes = signal(null); // Set of "METHOD path" that the server has
export const frame = signal({ rows: emptyFrame(1), version: 0 }); // one-second samples of the last 15 min
export const epoch = signal(0); // counts servers that answered here
export const link = signal({ state: "wait", silentS: 0, streaming: false });
export const roleToken = signal("operator");

export const has = (method, path) => Boolean(routes.value?.has(`${method} ${path}`));
export const mayAct = computed(() => roleToken.value !== "viewer");
export const isStale = computed(() => link.value.state === "stale");

const model = new Model();
let answeredAt = 0; // performance.now() of the last answer
let tickedAt = 0;
let rows = emptyFrame(1);
let decisionsSeen = -1;
let polls = 0;
let lastEventId = "";
let serverBegan = null; // Unix time at which the server that answers was started

export const serverNow = () => {
  const g = now.value?.at || graph.value?.time;
  return g ? g + Math.max(0, performance.now() - answeredAt) / 1000 : Date.now() / 1000;
};

const streaming = () => tickedAt > 0 && performance.now() - tickedAt < SILENT_MS;

// ---- another server ----

function forget() {
  rows = emptyFrame(1);
  decisionsSeen = -1;
  routes.value = null;
  decisions.value = null;
  acts.value = null;
  now.value = null;
  tick.value = null;
  model.forget();
  publish();
  epoch.value++;
}

function publish() {
  frame.value = { rows, version: frame.value.version + 1 };
}

// ---- asking ----

async function readRoutes() {
  const { routes: list } = await get("/api/v1");
  routes.value = new Set(list.map((r) => `${r.method} ${r.path}`));
  if (has("GET", "/api/v1/history")) await readHistory();
  if (has("GET", "/api/v1/acts")) await readActs();
  listen();
}

// What was before this page was opened.
async function readHistory() {
  try {
    const before = fromHistory(await get(`/api/v1/history?from=-${KEEP_ROWS}&step=1s`));
    if (before.at.length) rows = joined(before, rows);
    publish();
  } catch (e) {
    console.debug(e); // then the charts fill from now on
  }
}

export async function readActs() {
  if (!has("GET", "/api/v1/acts")) return;
  try {
    const answer = await get(`/api/v1/acts?n=${ACTS}`);
    acts.value = answer.acts || (Array.isArray(answer) ? answer : []);
  } catch (e) {
    console.debug(e);
  }
}

async function readGraph() {
  const [g, o] = await Promise.all([get("/api/v1/graph"), get("/api/v1/overload").catch(() => null)]);
  batch(() => {
    graph.value = g;
    if (o) mode.value = o.mode;
    roleToken.value = g.role || "operator";
  });
  const open = decisions.value?.some((d) => g.time - d.time < OUTCOME_S);
  if (g.decisions_total !== decisionsSeen || open) {
    const answer = await get(`/api/v1/decisions?n=${DECISIONS}`);
    decisions.value = answer.decisions;
    decisionsSeen = g.decisions_total;
  }
}

async function readStages() {
  const answer = await get("/api/v1/stages");
  answeredAt = performance.now();
  const began = answer.time - answer.uptime_seconds;
  const other = model.add(answer) || (serverBegan !== null && Math.abs(began - serverBegan) > BEGAN_S);
  serverBegan = began;
  if (other) {
    forget();
    model.add(answer);
  }
  if (!streaming()) {
    const sample = model.sample();
    if (sample) {
      append(rows, sample, KEEP_ROWS);
      publish();
    }
  }
  now.value = model.now();
  return other;
}

let wasAway = false;

async function poll() {
  const slow = streaming();
  try {
    const other = await readStages();
    if (other || wasAway || !graph.value || !slow || polls % GRAPH_EVERY === 0) await readGraph();
    if (!routes.value || wasAway) await readRoutes();
    wasAway = false;
    polls++;
  } catch (e) {
    console.debug(e.message);
    wasAway = true;
  }
  showLink();
  setTimeout(poll, document.hidden ? 5 * POLL_MS : slow ? POLL_SLOW_MS : POLL_MS);
}

function showLink() {
  const silent = performance.now() - answeredAt;
  const stale = silent > STALE_MS + (document.hidden ? 10000 : 0);
  const state = stale ? "stale" : answeredAt ? "live" : "wait";
  const silentS = stale ? Math.floor(silent / 1000) : 0;
  const was = link.value;
  const next = { state, silentS, never: answeredAt === 0, streaming: streaming() };
  if (was.state !== state || was.silentS !== silentS || was.streaming !== next.streaming) link.value = next;
}

// ---- being told ----

let source = null;
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("weir-live") : null;
if (channel) channel.onmessage = ({ data }) => take(data.type, data.text, data.id);

const KINDS = ["hello", "tick", "decision", "act", "config"];

let asked = false;
function listen() {
  if (!has("GET", "/events") || !("EventSource" in globalThis)) return;
  if (asked) return;
  asked = true;
  // The tab with the lock holds the connection until it is closed; then the next one gets both.
  if (navigator.locks && channel) navigator.locks.request("weir-live", () => { open(); return new Promise(() => {}); });
  else open();
}

function open() {
  if (source) source.close();
  source = new EventSource(`/events?hz=1${lastEventId ? `&last=${encodeURIComponent(lastEventId)}` : ""}`);
  for (const type of KINDS)
    source.addEventListener(type, (e) => {
      take(type, e.data, e.lastEventId);
      channel?.postMessage({ type, text: e.data, id: e.lastEventId });
    });
  // The browser comes back by itself, but not after an answer that is no stream.
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(open, 5000); };
}

function take(type, text, id) {
  let data;
  try {
    data = JSON.parse(text);
  } catch {
    return;
  }
  if (id) lastEventId = id;
  TAKE[type]?.(data);
}

const TAKE = {
  hello(h) {
    if (h.role) roleToken.value = h.role;
    // Another server, or more was missed than it can tell again: read everything with the next answer.
    if (h.gap || (serverBegan !== null && h.start && Math.abs(h.start - serverBegan) > BEGAN_S)) wasAway = true;
  },
  tick(t) {
    const newest = rows.at.at(-1) ?? 0;
    if (newest - t.at > 5) return; // replayed: history has it
    tickedAt = performance.now();
    append(rows, { at: t.at, stages: t.stages }, KEEP_ROWS);
    batch(() => {
      publish();
      tick.value = t;
      if (t.overload) mode.value = t.overload;
      if (graph.value && (graph.value.ready !== t.ready || graph.value.draining !== t.draining))
        graph.value = { ...graph.value, ready: t.ready, draining: t.draining };
    });
  },
  decision(d) {
    const known = decisions.value || [];
    if (known.some((x) => x.id === d.id)) decisions.value = known.map((x) => (x.id === d.id ? d : x));
    else decisions.value = [d, ...known].sort((a, b) => b.id - a.id).slice(0, DECISIONS);
  },
  act(a) {
    const known = acts.value || [];
    if (a.what === "undo" || a.what === "expire") readActs(); // an older one is taken back by it
    else if (!known.some((x) => x.id === a.id)) acts.value = [a, ...known].slice(0, ACTS);
  },
  config() {
    readGraph().catch(() => {});
  },
};

export function start() {
  poll();
  setInterval(showLink, 500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) showLink(); });
}
