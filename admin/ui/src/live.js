/* SPDX-License-Identifier: MIT */
// The state of the server as signals, and the polling and streaming that keep them current.
//
// /api/v1/stages is polled continuously: every number in the tables and the graph is derived from
// differences of its totals. If the server offers /events, it sends ticks, decisions and changes,
// and the page polls less often. Only one tab of a browser holds that connection (a Web Lock
// selects the tab) and passes the events on to the others. Without /events, samples are computed
// from the same differences.
//
// While the server does not answer, the page says so, keeps the last numbers (marked as stale) and
// continues polling. It recovers without being reloaded, even if another server has taken over the
// address.

import { batch, computed, effect, signal } from "@preact/signals";
import { get, locked } from "./api.js";
import { Model } from "./model.js";
import { append, emptyFrame, fromHistory, joined } from "./series.js";

const POLL_MS = 1000;
const LOCKED_MS = 10000; // interval of the checks whether another page has logged in
const POLL_SLOW_MS = 2000; // with /events
const GRAPH_EVERY = 5; // with /events, the graph is read with every GRAPH_EVERY-th poll
const STALE_MS = 3500; // without an answer for this long, the numbers are marked as stale
const SILENT_MS = 6000; // without a tick for this long, the stream is regarded as broken
const BEGAN_S = 3; // if two start times differ by more, they belong to two servers; clock adjustments are smaller
const OUTCOME_S = 45; // the outcome of a decision is known after this time
const KEEP_ROWS = 900;
const DECISIONS = 200;
const ACTS = 100;
const ALERTS = 64;

export const graph = signal(null);
export const now = signal(null); // the result of Model.now()
export const tick = signal(null); // the newest event `tick`
export const mode = signal("enforce");
export const decisions = signal(null);
export const alerts = signal(null); // { active, past }; null: not read, or not offered by the server
export const bottleneck = signal(null); // the bottleneck that the server reports
export const older = signal({ decisions: null, changes: null }); // paths of the next older pages; null: none
export const reloads = signal(null); // answer of /api/v1/reload; null: not read, or not offered by the server
export const configs = signal(0); // number of configurations that took effect while this page was open
export const acts = signal(null); // null: not read, or not offered by the server
export const routes = signal(null); // Set of "METHOD path" that the server offers
export const frame = signal({ rows: emptyFrame(1), version: 0 }); // one-second samples of the last 15 min
export const epoch = signal(0); // number of different servers that have answered at this address
export const link = signal({ state: "wait", silentS: 0, streaming: false });
export const roleToken = signal("operator");
export const session = signal(null); // { name, role, tokens, ends_in_seconds }; null: not read

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
let serverBegan = null; // Unix time at which the current server was started

export const serverNow = () => {
  const g = now.value?.at || graph.value?.time;
  return g ? g + Math.max(0, performance.now() - answeredAt) / 1000 : Date.now() / 1000;
};

// The name of the stage, group or class ("classes.NAME") that `target`, such as "disk.threads.max", begins with. Names
// may contain dots.
export function ownerOf(target) {
  const g = graph.value, text = String(target || "");
  const names = g ? g.stages.flatMap((s) => [s.name, s.group]).concat((g.classes || []).map((c) => `classes.${c}`)) : [];
  const fits = names.filter((n) => n && (text === n || text.startsWith(`${n}.`)));
  return fits.sort((a, b) => b.length - a.length)[0] ?? text.split(".")[0];
}

const streaming = () => tickedAt > 0 && performance.now() - tickedAt < SILENT_MS;

// ---- another server ----

function forget() {
  rows = emptyFrame(1);
  decisionsSeen = -1;
  routes.value = null;
  decisions.value = null;
  acts.value = null;
  alerts.value = null;
  reloads.value = null;
  bottleneck.value = null;
  older.value = { decisions: null, changes: null };
  now.value = null;
  tick.value = null;
  model.forget();
  publish();
  epoch.value++;
}

function publish() {
  frame.value = { rows, version: frame.value.version + 1 };
}

// ---- polling ----

async function readRoutes() {
  const { routes: list } = await get("/api/v1");
  routes.value = new Set(list.map((r) => `${r.method} ${r.path}`));
  session.value = has("GET", "/api/v1/session") ? await get("/api/v1/session") : null;
  if (has("GET", "/api/v1/history")) await readHistory();
  if (has("GET", "/api/v1/changes")) await readActs();
  await readAlerts();
  await readReload();
  listen();
}

// Read the samples of the time before this page was opened.
async function readHistory() {
  try {
    const before = fromHistory(await get(`/api/v1/history?from=-${KEEP_ROWS}&step=1s`));
    if (before.at.length) rows = joined(before, rows);
    publish();
  } catch (e) {
    console.debug(e); // the charts then start at the current time
  }
}

// Replace the newest page of a list. Older entries that were read before are kept after it.
function takePage(kind, list, answer) {
  const page = answer[kind], end = page.at(-1)?.id ?? 0;
  const kept = (list.value || []).filter((x) => x.id < end);
  batch(() => {
    list.value = [...page, ...kept];
    if (!kept.length) older.value = { ...older.value, [kind]: answer.next ?? null };
  });
}

// Read one more page of older entries for each list.
export async function readOlder() {
  for (const [kind, list] of [["decisions", decisions], ["changes", acts]]) {
    const path = older.value[kind];
    if (!path) continue;
    const answer = await get(path);
    const known = new Set((list.value || []).map((x) => x.id));
    batch(() => {
      list.value = [...(list.value || []), ...answer[kind].filter((x) => !known.has(x.id))];
      older.value = { ...older.value, [kind]: answer.next ?? null };
    });
  }
}

export async function readActs() {
  if (!has("GET", "/api/v1/changes")) return;
  try {
    takePage("changes", acts, await get(`/api/v1/changes?limit=${ACTS}`));
  } catch (e) {
    console.debug(e);
  }
}

async function readAlerts() {
  if (has("GET", "/api/v1/alerts")) alerts.value = await get("/api/v1/alerts");
}

// Read and return the results of reloads, or null if they are not known.
export async function readReload() {
  if (!has("GET", "/api/v1/reload")) return null;
  try {
    return (reloads.value = await get("/api/v1/reload"));
  } catch (e) {
    console.debug(e.message);
    return null;
  }
}

async function readGraph() {
  const [g, o] = await Promise.all([get("/api/v1/graph"), get("/api/v1/overload").catch(() => null)]);
  batch(() => {
    graph.value = g;
    if (o) mode.value = o.mode;
    roleToken.value = g.role || "operator";
  });
  await readAlerts();
  await readReload();
  const open = decisions.value?.some((d) => g.time - d.time < OUTCOME_S);
  if (g.decisions_total !== decisionsSeen || open) {
    takePage("decisions", decisions, await get(`/api/v1/decisions?limit=${DECISIONS}`));
    decisionsSeen = g.decisions_total;
  }
}

async function readStages() {
  const answer = await get("/api/v1/stages");
  answeredAt = performance.now();
  const began = answer.time - answer.uptime_seconds;
  const change = model.add(answer);
  const other = change === "server" || (serverBegan !== null && Math.abs(began - serverBegan) > BEGAN_S);
  serverBegan = began;
  if (other) {
    forget();
    model.add(answer);
  }
  if (answer.bottleneck !== undefined) bottleneck.value = answer.bottleneck;
  if (!streaming()) {
    const sample = model.sample();
    if (sample) {
      append(rows, sample, KEEP_ROWS);
      publish();
    }
  }
  now.value = model.now() ?? (change === "graph" ? now.value : null);
  return other || change === "graph";
}

// A new configuration is in effect, in the same graph or a new one: read everything that depends on
// it.
export function configured() {
  configs.value++;
  if (again) {
    clearTimeout(again);
    poll();
  }
  readGraph().catch(() => {});
}

let wasAway = false;
let again = 0; // timer of the next poll; 0: a poll is in progress

async function poll() {
  again = 0;
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
    if (e.status === 401) answeredAt = performance.now(); // 401 is also an answer
  }
  showLink();
  again = setTimeout(poll, locked.value ? LOCKED_MS : document.hidden ? 5 * POLL_MS : slow ? POLL_SLOW_MS : POLL_MS);
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

// ---- streaming ----

let source = null;
const channel = "BroadcastChannel" in globalThis ? new BroadcastChannel("weir-live") : null;
if (channel) channel.onmessage = ({ data }) => take(data.type, data.text, data.id);

const KINDS = ["hello", "tick", "decision", "act", "alert", "config", "reload"];

let asked = false;
function listen() {
  if (!has("GET", "/events") || !("EventSource" in globalThis)) return;
  if (asked) return;
  asked = true;
  // The tab that has the lock holds the connection until the tab is closed. The next tab then
  // acquires the lock and opens a connection.
  if (navigator.locks && channel) navigator.locks.request("weir-live", () => { open(); return new Promise(() => {}); });
  else open();
}

const reopen = () => (locked.value ? setTimeout(reopen, 1000) : open());

function open() {
  if (source) source.close();
  source = new EventSource(`/events?hz=1${lastEventId ? `&last=${encodeURIComponent(lastEventId)}` : ""}`);
  for (const type of KINDS)
    source.addEventListener(type, (e) => {
      take(type, e.data, e.lastEventId);
      channel?.postMessage({ type, text: e.data, id: e.lastEventId });
    });
  // The browser reconnects automatically, except after an answer that is not a stream.
  source.onerror = () => { if (source.readyState === EventSource.CLOSED) setTimeout(reopen, 5000); };
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

// Several ticks may arrive together, after the tab slept or on a slow machine. They are drawn once,
// in the next animation frame.
let undrawn = null;
function showSoon(t) {
  const due = undrawn !== null;
  undrawn = t;
  if (due) return;
  const show = () => {
    const shown = undrawn;
    undrawn = null;
    if (tickedAt) showTick(shown);
  };
  if (document.hidden) setTimeout(show, 1000);
  else requestAnimationFrame(show);
}

function showTick(t) {
  batch(() => {
    publish();
    tick.value = t;
    if (t.overload) mode.value = t.overload;
    if (t.bottleneck !== undefined) bottleneck.value = t.bottleneck;
    if (graph.value && (graph.value.ready !== t.ready || graph.value.draining !== t.draining))
      graph.value = { ...graph.value, ready: t.ready, draining: t.draining };
  });
}

const TAKE = {
  hello(h) {
    if (h.role) roleToken.value = h.role;
    // This is another server, or it cannot replay all missed events: read everything with the next
    // poll.
    if (h.gap || (serverBegan !== null && h.start && Math.abs(h.start - serverBegan) > BEGAN_S)) wasAway = true;
  },
  tick(t) {
    const newest = rows.at.at(-1) ?? 0;
    if (newest - t.at > 5) return; // a replayed tick, which is already in the history
    tickedAt = performance.now();
    append(rows, { at: t.at, stages: t.stages }, KEEP_ROWS);
    showSoon(t);
  },
  decision(d) {
    const known = decisions.value || [];
    if (known.some((x) => x.id === d.id)) decisions.value = known.map((x) => (x.id === d.id ? d : x));
    else decisions.value = [d, ...known].sort((a, b) => b.id - a.id).slice(0, Math.max(DECISIONS, known.length));
  },
  act(a) {
    const known = acts.value || [];
    if (a.what === "undo" || a.what === "expire") readActs(); // an older change was reverted
    else if (!known.some((x) => x.id === a.id)) acts.value = [a, ...known].slice(0, Math.max(ACTS, known.length));
  },
  alert(a) {
    const { active, past, rules } = alerts.value || { active: [], past: [] };
    const others = active.filter((x) => x.id !== a.id);
    alerts.value = a.until === null ? { active: [a, ...others], past, rules }
      : { active: others, past: [a, ...past.filter((x) => x.id !== a.id)].slice(0, ALERTS), rules };
  },
  config() {
    configured();
  },
  reload() {
    readReload();
  },
};

export function start() {
  poll();
  effect(() => {
    if (locked.value || !again) return;
    clearTimeout(again); // logged in: poll immediately
    poll();
  });
  setInterval(showLink, 500);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) showLink(); });
}
