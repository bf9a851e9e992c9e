// SPDX-License-Identifier: MIT
// A fake admin endpoint for the tests of the dashboard. It serves the built page with headers like
// those of admin/request/reply.c, and answers the API from a known state: load that follows a wave, names
// that are markup, a role, and routes that can be removed. Nothing is random.

import { existsSync, readFileSync } from "node:fs";
import http from "node:http";
import { extname, join } from "node:path";

// The owner of a knob in the path of a request, as changes name it.
const ownerOf = (parts) => (parts[3] === "classes" ? `classes.${parts[4]}` : parts[4]);
const TYPES = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".txt": "text/plain" };
export const CSP = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
  "img-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";
const REASONS = ["queue_full", "threshold", "rate", "deadline", "stopping", "pressure", "priority", "delay", "hopeless", "limit"];
const ROUTES = ["GET /api/v1/graph", "GET /api/v1/stages", "GET /api/v1/stages/{stage}/knobs", "PUT /api/v1/stages/{stage}/knobs/{knob}",
  "DELETE /api/v1/stages/{stage}/knobs/{knob}", "GET /api/v1/stages/{stage}/queue", "POST /api/v1/stages/{stage}/pause",
  "POST /api/v1/stages/{stage}/resume", "POST /api/v1/stages/{stage}/drain", "POST /api/v1/undo", "GET /api/v1/changes", "GET /api/v1/alerts", "GET /api/v1/decisions",
  "GET /api/v1/overload", "PUT /api/v1/overload", "GET /api/v1/history", "GET /events", "GET /api/v1/requests/slowest", "GET /api/v1/profile", "GET /api/v1/config",
  "GET /api/v1/reload", "POST /api/v1/reload", "POST /api/v1/save", "GET /api/v1/groups/{group}/knobs", "PUT /api/v1/groups/{group}/knobs/{knob}", "DELETE /api/v1/groups/{group}/knobs/{knob}",
  "GET /api/v1/classes/{class}/knobs", "PUT /api/v1/classes/{class}/knobs/{knob}", "DELETE /api/v1/classes/{class}/knobs/{knob}", "GET /metrics", "GET /readyz"];

const round = (x) => Math.round(x * 1e6) / 1e6;

// options, all but `dist` optional:
//   dist       folder of the built page
//   stage      fields to replace in every response about `work`
//   broken     the configuration file is invalid
//   more       name of a stage that the file has and the graph does not have yet
//   role       role of the client (operator)
//   idle       no event waits
//   without    [routes that do not exist]
//   names      { web, backend, work, answer }: other names for the stages
//   classes    [names of the classes]
//   evil       text inserted into every free text
//   up         uptime in seconds at the start (4000)
//   stages     number of stages, at least the four above
//   chain      number of stages in a row between `work` and `answer`
//   pool       `backend` and `work` share a pool with this name
//   cohorts    calls of `work` have several events
//   times      threads of a pool in each state
//   files      open descriptors, of 1,024
//   policies   `work` has knobs of several policies, of which it uses `weir`
//   slow       requests instead of the five slowest
//   away       connections turned away before the graph, per second
//   limits     `work` limits the server
//   decisions  number of older decisions
//   restarted  the first two decisions and a change are of an earlier process
//   cores      `work` is in a core group with as many cores
export class World {
  constructor(options = {}) {
    this.options = options;
    this.names = { web: "web", backend: "backend", work: "work", answer: "answer", ...options.names };
    this.classes = options.classes || ["vip", "bulk"];
    this.evil = options.evil || "";
    this.upAtStart = options.up ?? 4000;
    this.started = Date.now() / 1000 - this.upAtStart;
    this.knobs = new Map();
    this.acts = [];
    if (options.restarted) this.acts.push({ id: 1, at: this.now() - 1000, before_restart: true, actor: "ana", what: "set", target: `${this.names.work}.threads.max`, from: "16", to: "8", undone: false });
    this.told = new Map(); // alerts by id
    this.streams = new Set();
    this.eventId = 0;
    this.calls = [];
    this.mode = "enforce";
    this.reloads = { done: 0, graph: 0, total: 0, failed: 0, draining: 0, last: null, failure: null };
    if (this.evil) this.reload(false, { broken: true });
  }

  now() {
    return Date.now() / 1000;
  }

  up() {
    return this.now() - this.started;
  }

  has(route) {
    return !(this.options.without || []).includes(route);
  }

  // Events per second, `t` seconds after the start; smooth. `total` is its integral.
  load(t) {
    return 900 + 300 * Math.sin(t / 40);
  }

  total(t) {
    return 900 * t - 300 * 40 * (Math.cos(t / 40) - 1);
  }

  // One page of `rows` (newest first), and the path of the next page.
  page(path, rows, query) {
    const limit = Number(query.get("limit") || 50), before = Number(query.get("before") || Infinity);
    const rest = rows.filter((r) => r.id < before), page = rest.slice(0, limit);
    return { page, next: rest.length > limit ? `${path}?limit=${limit}&before=${page.at(-1).id}` : null };
  }

  // The four stages, and as many more as options.stages asks for.
  stages() {
    const few = this.fewStages();
    if (this.reloads.graph && this.options.more) few.push({ ...few[3], name: this.options.more });
    const more = Math.max(0, (this.options.stages || 0) - few.length);
    const chain = Array.from({ length: this.options.chain || 0 }, (_, i) => ({ ...few[2], name: `step${i}`, group: `step${i}`, depth: 3 + i,
      to: i + 1 < this.options.chain ? `step${i + 1}` : this.names.answer }));
    if (chain.length) few[2] = { ...few[2], to: "step0" };
    return [...few, ...chain, ...Array.from({ length: more }, (_, i) => ({ ...few[2], name: `more${i}`, group: `more${i}` }))];
  }

  fewStages() {
    const n = this.names;
    return [
      { name: n.web, use: "http.server", summary: `Accepts connections${this.evil}`, placement: "source", depth: 0, group: "", share: 1, to: n.backend, outlet: "request" },
      { name: n.backend, use: "delay", summary: "Sleeps by a distribution", placement: this.options.pool ? "group" : "pool", depth: 1, group: this.options.pool || n.backend, share: 1, shed: this.options.away ? 0 : 0.55, to: n.work, outlet: "out", limit: 512, wait: 0.0004, service: 0.002, threads: 4 },
      { name: n.work, use: "burn", summary: "Uses CPU time", placement: this.options.cores || this.options.pool ? "group" : "pool", depth: 2, group: this.options.cores ? "core" : this.options.pool || n.work, share: 0.45, to: n.answer, outlet: "out", limit: 1024, wait: 0.02, service: 0.004, threads: 2 },
      { name: n.answer, use: "respond", summary: "Answers", placement: "inline", depth: 3, group: "", share: 0.45, service: 0.000002 },
    ];
  }

  graph() {
    const stages = this.stages();
    return {
      time: this.now(), uptime_seconds: this.up(), name: `made-up${this.evil}`, ready: true, draining: false, decisions_total: this.decisions().length,
      role: this.options.role || "operator", classes: this.classes,
      stages: stages.map(({ name, use, summary, placement, depth, group }) => ({ name, use, summary, placement, depth, group, mode: "shared" })),
      links: stages.filter((s) => s.to).map((s) => ({ from: s.name, outlet: s.outlet, to: s.to, type: "http.request", events_total: 1, loop: false })), groups: this.groups(),
    };
  }

  // The core group, with `cores` if the time is given.
  groups(t = null) {
    if (!this.options.cores) return [];
    const group = { name: "core", source: null, schedule: `wavefront${this.evil}`, gate: "time: 10ms", starve_seconds: 0.025, balance: true, order: "arrival", cores_now: this.options.cores,
      stages: [{ name: this.names.work, urgent: { events: 128, wait_seconds: 0.002 } }] };
    return [t === null ? group : { ...group, cores: this.cores(t) }];
  }

  // After the cores of the group come `left` that have left it. Core k is busy for 90, 45, 30 ... % of the time. It makes 100 visits a second of 6 events.
  cores(t) {
    return Array.from({ length: (this.options.cores || 0) + (this.options.left || 0) }, (_, k) => ({ visits_total: 100 * t, urgent_total: 20 * t, starved_total: 5 * t, cut_by_gate_total: 10 * t,
      cut_by_urgent_total: 0, cut_by_starved_total: 5 * t, batches_total: 120 * t, events_total: 600 * t, from_queue_total: 150 * t, dealt_total: 12 * t, moved_total: 3 * t,
      ...this.sleep(k), busy_seconds_total: 0.9 / (k + 1) * t, waiting: 17, oldest_wait_seconds: 0.001, longest_wait_seconds: 0.027 }));
  }

  // Core 0 sleeps if `asleep` is given, and its spare if `spare` is.
  sleep(k) {
    const { asleep = 0, spare = 0 } = k === 0 ? this.options : {};
    return { blocked_total: asleep ? 3 : 0, blocked_seconds: asleep, blocked_in: asleep ? this.names.work : null,
      spare_blocked_seconds: spare, spare_blocked_in: spare ? this.names.answer : null };
  }

  full() {
    const t = this.up();
    return { time: this.now(), uptime_seconds: t, name: this.graph().name, process_cpu_seconds: t,
      process: { cores: 4, threads: 21, resident_bytes: 41e6, open_files: this.options.files ?? 60, open_files_limit: 1024 }, bottleneck: this.bottleneck(),
      stages: this.stages().map((s) => this.fullStage(s, t)), groups: this.groups(t) };
  }

  fullStage(s, t) {
    const all = Math.floor(this.total(t) * s.share);
    const shed = Math.floor(all * (s.shed || 0));
    const pool = s.placement === "pool" || s.placement === "group";
    const histogram = (seconds, n) => ({ count: n, sum: n * seconds, p50: seconds, p90: seconds, p99: 2 * seconds, p999: null,
      buckets: n && seconds ? [[seconds, Math.ceil(n * 0.95)], [2 * seconds, n - Math.ceil(n * 0.95)]] : [] });
    const classes = this.classes.map((name, i) => {
      const part = i === 0 ? 0.1 : 0.9 / (this.classes.length - 1);
      const offered = Math.floor(all * part), lost = i === 0 ? 0 : Math.min(offered, Math.floor(shed / (this.classes.length - 1)));
      return { name, offered_total: offered, admitted_total: offered - lost, completed_total: offered - lost, failed_total: 0, spawned_total: 0, departed_total: 0,
        shed_total: Object.fromEntries(REASONS.map((r) => [r, r === "priority" ? lost : 0])), shadow_shed_total: 0, refused_ahead_total: 0,
        queued: pool ? 20 : 0, wait_seconds: histogram(pool ? s.wait : 0, pool ? offered - lost : 0), service_seconds: histogram(s.service || 0, s.service ? offered - lost : 0),
        // clients get nine good answers of ten, and of the others as many refusals as failures; class i waits for 20 ms * (i + 1)
        response_seconds: s.placement !== "source" ? null : { ok: histogram(0.02 * (i + 1), Math.floor(0.9 * offered)),
          shed: histogram(0.001, Math.floor(0.05 * offered)), failed: histogram(0.1, Math.floor(0.05 * offered)) } };
    });
    return {
      name: s.name, use: s.use, summary: s.summary, placement: s.placement, group: s.group, mode: "shared", depth: s.depth,
      admission: { policy: "weir", mode: "enforce", why: `calm${this.evil}`, nonsense_total: 0 },
      queue: { length: pool ? 40 : 0, limit: s.limit || 0, oldest_wait_seconds: pool ? s.wait : 0 }, in_flight: pool ? 42 : 0, held: 0, awaiting: 0,
      children: { limit: 256, spawned_total: 0, joined_total: 0, orphaned_total: 0, cancelled_total: 0, refused_total: 0, in_flight: 0 },
      law: { residual: 0, slack: 3 },
      threads: { busy: pool ? 2 : 0, spinning: 0, idle: pool ? s.threads - 2 : 0, now: s.threads || 0, target: this.options.cores && s.placement === "group" ? this.options.cores : s.threads || 0, min: pool ? 1 : 0, max: pool ? 16 : 0,
        failures_total: 0, deaths_total: 0, stuck_total: 0 },
      busy_seconds_total: (all - shed) * (pool ? s.service : 0), stuck_call: null,
      thread_seconds_total: this.times(t, pool), batches_total: all - shed, batch_events_total: all - shed,
      cohort_size: this.cohorts(s, all - shed), wakeups_total: 0, unhandled_total: 0,
      longest_running_seconds: 0, slo_seconds: pool ? 0.1 : null, pressure: pool ? 0.3 : 0, degradation: 0, width: null,
      clients: s.placement === "source" ? this.options.clients || null : null, cores: this.options.cores && s.placement === "group" ? this.cores(t) : [],
      links: s.to ? [{ outlet: s.outlet, to: s.to, type: null, events_total: all - shed, loop: false }] : [],
      metrics: s.placement === "source" ? this.metrics(t) : [], classes, ...(s.name === this.names.work ? this.options.stage : {}),
      ...(s.name === this.names.answer && this.options.makes ? { in_flight: 33 } : {}),
    };
  }

  // options.times: threads of `work` and other pools in each state.
  times(t, pool) {
    const n = pool && this.options.times ? this.options.times : { running: pool ? 0.5 : 0, runnable: 0.1, io: pool ? 0.8 : 0, lock: 0.1, memory: 0, sleep: 0, blocked: 0, downstream: 0, idle: pool ? 2 : 0.9 };
    return Object.fromEntries(Object.entries(n).map(([key, k]) => [key, k === null ? null : k * t]));
  }

  // A half of the calls have one event, a quarter two, and a quarter five to eight.
  cohorts(s, calls) {
    const half = Math.floor(calls / 2), quarter = Math.floor(calls / 4);
    const buckets = !this.options.cohorts || s.name !== this.names.work ? [[1, calls]] : [[1, half], [2, quarter], [8, quarter]];
    return { count: buckets.reduce((n, [, k]) => n + k, 0), sum: buckets.reduce((n, [to, k]) => n + to * k, 0), buckets: buckets.filter(([, k]) => k > 0) };
  }

  // options.away: connections per second turned away before the graph; then nothing is shed in it.
  metrics(t) {
    const row = (name, help, value, turned_away, kind = "counter") => ({ name, kind, unit: "connections", help: help + this.evil, value: Math.floor(value), turned_away });
    return [row("http_accepted_total", "client connections accepted", t, false), row("http_connections", "client connections that are open", 37, false, "gauge"),
      row("http_responses_2xx_total", "responses of class 2xx", 800 * t, false), row("http_responses_3xx_total", "responses of class 3xx", 0, false),
      row("http_responses_4xx_total", "responses of class 4xx", 50 * t, false), row("http_responses_5xx_total", "responses of class 5xx", 150 * t, false),
      row("http_refused_address_total", "connections refused for exceeding max_per_address", (this.options.away || 0) * t, true)];
  }

  sample(s, t, withClasses) {
    const r = this.load(t) * s.share, pool = s.placement === "pool" || s.placement === "group";
    const out = { name: s.name, in: round(r), done: round(r * (1 - (s.shed || 0))), shed: round(r * (s.shed || 0)), failed: 0, ahead: 0,
      queue: pool ? Math.round(40 + 30 * Math.sin(t / 15)) : 0, oldest: pool ? s.wait : 0, wait_p50: pool && !this.options.idle ? s.wait : null,
      wait_p99: pool && !this.options.idle ? round(s.wait * (3 + Math.sin(t / 9))) : null, service_p50: s.service ?? null, service_p99: s.service ? 3 * s.service : null,
      busy: pool ? 0.8 : 0, threads: s.threads || 0, pressure: pool ? 0.3 : 0, degradation: 0 };
    if (withClasses) out.classes = this.classes.map((_, i) => ({ in: round(r * (i ? 0.9 : 0.1)), done: round(r * 0.4), shed: i ? out.shed : 0, wait_p99: out.wait_p99,
      response_p99: s.placement === "source" ? 0.04 * (i + 1) : null, ...(s.placement === "source" ? { good: round(r * 0.4), refused: i, broken: 0 } : { good: null, refused: null, broken: null }) }));
    return out;
  }

  history(query) {
    const step = query.get("step") === "10s" ? 10 : 1, keep = step === 1 ? 900 : 21600;
    const unix = (text, otherwise) => (text === null || text === "" ? otherwise : Number(text) < 0 ? this.now() + Number(text) : Number(text));
    const to = Math.min(unix(query.get("to"), this.now()), this.now()), from = Math.max(unix(query.get("from"), this.now() - keep), this.started, this.now() - keep);
    const at = [];
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) at.push(t);
    const only = query.get("stage"), stages = {};
    for (const s of this.stages()) {
      if (only && s.name !== only) continue;
      const rows = at.map((t) => this.sample(s, t - this.started, Boolean(only)));
      const fields = only ? Object.keys(rows[0] || {}).filter((f) => f !== "name" && f !== "classes") : ["in", "done", "shed", "queue", "wait_p99", "response_p99", "busy", "threads"];
      stages[s.name] = Object.fromEntries(fields.map((f) => [f, rows.map((r) => r[f])]));
      if (only && rows.length) stages[s.name].classes = this.classes.map((_, i) => Object.fromEntries(["in", "done", "shed", "wait_p99", "response_p99", "good", "refused", "broken"].map((f) => [f, rows.map((r) => r.classes[i][f])])));
    }
    return { step, from, to, at, classes: this.classes, stages };
  }

  decisions() {
    const base = this.started + this.upAtStart - 600;
    const old = this.options.decisions || 0; // number of decisions before these
    const made = [["grow", 1, 2, "helped"], ["limit", 2, 2, null], ["shrink", 4, 3, "no effect"], ["grow", 3, 4, "harmed"]].map(([action, from, to, outcome], i) => ({
      id: old + i + 1, time: base + 120 * i, before_restart: Boolean(this.options.restarted) && i < 2, uptime_seconds: this.upAtStart - 600 + 120 * i, stage: i % 2 ? this.names.backend : this.names.work, actor: "weir", action,
      rule: `need ${i + 1}.6 threads: 536/s x (4.11 ms CPU + 0 ms blocked) / 0.8${this.evil}`, limit: action === "limit" ? "wanted 3, max 2" : "",
      inputs: "queue=7/1024 threads=2 busy=2 offered=648 completed=193 cpu=83%", from, to, outcome_5s: outcome, outcome_30s: null }));
    const older = Array.from({ length: old }, (_, i) => ({ ...made[0], id: i + 1, time: base - old + i, rule: `rule ${i + 1}` }));
    return [...older, ...made].reverse();
  }

  knobList(stage) {
    const knob = (name, value, type, live, help, choices = null) => {
      const over = this.knobs.get(`${stage} ${name}`) ?? null;
      return { name, value: over?.value ?? value, configured: value, overridden: over?.value ?? null, effective: over?.value ?? value, expires_at: over?.until ?? null,
        type, written: "a whole number", choices, default: value, live, help: help + this.evil };
    };
    if (this.options.cores && stage === "core") return [knob("starve", "25ms", "duration", true, "longest wait of a stage"), knob("visit", "[]", "strings", false, "order of the stages")];
    if (stage.startsWith("classes.")) return [knob("slo", "500ms", "duration", true, "how long an event of this class may take in total"), knob("priority", "auto", "int", false, "0 is the highest")];
    const policies = stage !== this.names.work || !this.options.policies ? [] : [
      knob("admission.policy", "auto", "string", false, "policy that chooses which events may enter the queue"),
      knob("admission.threshold", "auto", "int", true, "policy threshold: queue length from which events are refused"),
      knob("admission.target", "auto", "duration", true, "policies codel and dagor: target wait; weir: target of its own; auto is the policy's default"),
      knob("admission.rate", "0", "rate", true, "policy rate: events admitted per second"),
      knob("with.dist", "exp", "enum", true, "distribution of the times", "exp|bimodal"), knob("with.slow", "10ms", "duration", true, "time of slow events with dist bimodal")];
    return [...policies, knob("threads.min", "1", "int", true, "least handler threads"), knob("threads.max", "16", "int", true, "most handler threads"),
      knob("queue.limit", "1024", "int", true, "most events that may wait"), knob("admission.mode", "enforce", "choice", true, "what is done with a refusal", "enforce|shadow|off"),
      knob("threads.pin", "false", "bool", false, "bind threads to cores")];
  }

  act(what, target, from, to) {
    this.acts.unshift({ id: this.acts.length + 1, at: this.now(), actor: "operator", what, target, from, to, undone: false });
    this.send("act", this.acts[0]);
  }

  send(type, data) {
    if (type === "alert") this.told.set(data.id, data);
    this.eventId++;
    for (const r of this.streams) r.write(`id: ${this.eventId}\nevent: ${type}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  tick(at = this.now()) {
    const t = at - this.started;
    this.send("tick", { at, uptime: t, hz: 1, overload: this.mode, ready: true, draining: false,
      stages: this.stages().map((s) => ({ ...this.sample(s, t), shed_by: {} })), classes: [], bottleneck: this.bottleneck(), self: { cpu: 0.001, watchers: this.streams.size } });
  }

  // The server's report on its bottleneck; with options.limits one exists.
  bottleneck() {
    const limits = Boolean(this.options.limits);
    return { stage: this.names.work, limits, chronic: limits, since: limits ? this.started : null, used: 0.97, threads: 2, max: 2, served: 400, ceiling: 412,
      service: 0.0048, formula: `2 threads / 4.8 ms = 412/s at most${this.evil}`, law: "utilisation law, X = U n / S",
      text: limits ? `${this.names.work} limits the server: its 2 threads are 97 % used, 400/s of 412/s, for 42 s.` : "Nothing limits the server." };
  }

  alert(id, name, level, until = null) {
    return { id, name, level, stage: this.names.work, since: this.started, until, text: `a handler of ${this.names.work} is stuck: it has been running for 9 s${this.evil}` };
  }

  alerts() {
    const all = [...this.told.values()].concat(this.evil ? [this.alert(1, "stage_stuck", "bad")] : []);
    return { active: all.filter((a) => a.until === null), past: all.filter((a) => a.until !== null) };
  }

  // Carry out a reload; the result is in `reloads`.
  reload(preview, { broken = this.options.broken, more = this.options.more } = {}) {
    const r = this.reloads, n = this.names;
    const change = (path, from, to, effect, hidden = false) => ({ path: `${path}${this.evil}`, from, to, hidden, effect });
    const changes = [change("admin.listen", "127.0.0.1:9900", "127.0.0.1:9901", "restart")];
    if (more && !r.graph) changes.push(change(`stages.${more}`, null, `respond${this.evil}`, "add"));
    changes.push(change(`stages.${n.answer}.with.body`, null, null, "rebuild", true), change(`stages.${n.work}.threads.max`, "16", `8${this.evil}`, "live"),
      change(`stages.${n.web}.with.user`, "", "header.x-user", "rebuild"), change("stages.old", "drop", null, "remove"));
    const text = `made-up.yaml:7:5: unknown key 'treads' in stage 'work'\n    7 |     treads: 4 ${this.evil}\n      |     ^^^^^^ did you mean 'threads'?\n`;
    const error = { file: "made-up.yaml", line: 7, column: 5, length: 6, code: "invalid", text: `unknown key 'treads'${this.evil}`, hint: "did you mean 'threads'?" };
    r.done++;
    r.last = { id: r.done, at: this.now(), took: 0.02, by: "operator", preview, result: broken ? "failed" : preview ? "preview" : "followed",
      summary: broken ? "1 error. The running configuration was not changed." : "1 stage changes, 2 stages are rebuilt, 1 stage is added, 1 stage is removed, 0 connections dropped; some changes wait for the next start",
      changes: broken ? [] : changes, errors: broken ? [error] : [], text: broken ? text : "" };
    if (preview) return;
    Object.assign(r, { total: r.total + 1, failed: r.failed + Number(broken || 0), graph: r.graph + Number(!broken), failure: broken ? r.last : null });
    if (!broken) this.send("config", { at: this.now(), graph: r.graph });
  }

  // options.makes: `work` makes events, which go to `answer`; the slowest request has awaited 16 children.
  family(i, took) {
    const n = this.names, span = (stage, after, wait, service, awaiting) => ({ stage, after: took * after, wait: took * wait, service: took * service, awaiting: took * awaiting });
    if (!this.options.makes || i > 0) return {};
    return { children: 16, spans: [span(n.work, 0, 0.1, 0.1, 0.6), span(n.work, 0.8, 0, 0.2, 0)],
      child_spans: [{ ...span(n.answer, 0.2, 0.5, 0.1, 0), child: 16 }, { ...span(n.answer, 0.2, 0.4, 0.1, 0), child: 15 }] };
  }

  requests() {
    const n = this.names;
    if (this.options.slow) return { requests: this.options.slow.map((r, i) => ({ id: i + 1, class: this.classes[0], at: this.now(), took: 1 / (i + 1), outcome: "ok", path: "", trace: "", end: n.answer, hops: 1, children: 0, child_spans: [],
      spans: [{ stage: n.web, after: 0, wait: 0, service: 0.001, awaiting: 0 }], ...r })), next: null };
    return { requests: [0.41, 0.35, 0.3, 0.12, 0.02].map((took, i) => ({ id: `B0${i}`, class: this.classes[i % this.classes.length], at: this.now() - 20 * i, took, outcome: "ok",
      path: `/x/${i}${this.evil}`, spans: [{ stage: n.web, after: took * 0.5, wait: 0, service: took * 0.05 }, { stage: n.backend, after: took * 0.55, wait: took * 0.1, service: took * 0.1 },
        { stage: n.work, after: took * 0.8, wait: took * 0.1, service: took * 0.05 }].map((s) => ({ ...s, awaiting: 0 })), children: 0, child_spans: [], ...this.family(i, took) })) };
  }

  // Two cores do 3/5 and 2/5 of `backend` and `work`; each tenth event of `work` is put back once.
  profile() {
    const n = this.names, t = this.options.idle ? 0 : this.up(), all = Math.floor(this.total(t));
    const waits = (count, mean) => ({ count, sum: count * mean, restarted_sum: 0,
      buckets: count ? [[mean, Math.floor(count * 0.9)], [mean * 4, Math.ceil(count * 0.1)]] : [] });
    const row = (on, kind, started, restarted, wait, more = {}) => ({ on, kind, offered_total: 0, refused_total: 0, started_total: started,
      restarted_total: restarted, put_back_total: restarted, dropped_total: 0, completed_total: started, failed_total: 0, shed_total: 0, spawned_total: 0, departed_total: 0,
      busy_seconds_total: t * 0.4, batches_total: started, waiting: 0, wait_seconds: waits(started + restarted, wait), ...more });
    const part = [Math.floor(all * 0.6), all - Math.floor(all * 0.6)];
    const stage = (name, placement, group, rows) => ({ name, placement, group, waiting: 0, running: 0, held: 0, awaiting: 0, rows });
    const cores = (again) => part.map((k, i) => row(`core/${i}`, "core", k, again ? Math.floor(k / 10) : 0, 0.002 * (i + 1)));
    const arcs = (from, to) => part.map((k, i) => ({ from, outlet: `out${this.evil}`, to, on: `core/${i}`, sent_total: k, offered_total: k }));
    return { name: "made-up", time: this.now(), since: this.started, counted_seconds: Math.max(t, 1), stages: [
      stage(n.web, "source", "", [row("web/0", "io", all, 0, 0, { wait_seconds: waits(0, 0), batches_total: 0 })]),
      stage(n.backend, "group", "core", cores(false)), this.options.makes ? { ...stage(n.work, "group", "core", cores(true).map((r) => ({ ...r, spawned_total: 16 * r.started_total, departed_total: 15 * r.started_total }))), awaiting: 12 }
        : stage(n.work, "group", "core", cores(true)), stage(n.answer, "inline", "", cores(false))],
    arcs: [{ from: n.web, outlet: "request", to: n.backend, on: "web/0", sent_total: all, offered_total: all + Math.floor(all / 100) },
      ...arcs(n.backend, n.work), ...arcs(n.work, n.answer)] };
  }

  config() {
    const text = `# A made-up server${this.evil}\nweir: 1\nname: made-up\nstages:\n  web: { use: http.server, to: { request: backend } }\n  work:\n    use: burn      # CPU\n    with: { time: 4ms }\n`;
    return { files: [{ file: `made-up.yaml${this.evil}`, text }], lines: [{ file: `made-up.yaml${this.evil}`, line: 8, path: `stages.work.with.time${this.evil}`, value: "4ms" }] };
  }
}

// Returns { port, world, close() }. Port 0: any free port.
export async function serve(world, port = 0) {
  const server = http.createServer((request, response) => answer(world, request, response));
  await new Promise((done) => server.listen(port, "127.0.0.1", done));
  const timer = setInterval(() => world.tick(), 1000);
  return { port: server.address().port, world, close: () => new Promise((done) => {
    clearInterval(timer);
    for (const r of world.streams) r.destroy();
    server.close(done);
    server.closeAllConnections();
  }) };
}

async function answer(world, request, response) {
  const url = new URL(request.url, "http://127.0.0.1");
  const parts = url.pathname.split("/").map(decodeURIComponent);
  const send = (status, body, type = "application/json") => {
    response.writeHead(status, { "Content-Type": type, "Cache-Control": "no-store", Connection: "close", "Content-Security-Policy": CSP, "X-Content-Type-Options": "nosniff" });
    response.end(type === "application/json" || type === "application/problem+json" ? JSON.stringify(body) : body);
  };
  const problem = (status, detail) => send(status, { type: "about:blank", title: "Problem", status, detail }, "application/problem+json");
  const file = join(world.options.dist, url.pathname === "/" ? "index.html" : parts.at(-1));
  if (parts.length === 2 && existsSync(file)) return send(200, readFileSync(file), `${TYPES[extname(file)]}; charset=utf-8`);

  let body = "";
  for await (const chunk of request) body += chunk;
  const json = body ? JSON.parse(body) : {};
  const { method } = request;
  if (method !== "GET") {
    world.calls.push({ method, path: url.pathname, body: json });
    if (world.options.role === "viewer") return problem(403, "a viewer may look, not act");
  }
  const below = { stages: "{stage}", groups: "{group}", classes: "{class}" }[parts[3]];
  const pattern = below && parts.length > 4 ? ["", "api", "v1", parts[3], below, ...parts.slice(5).map((p, i) => (i === 1 ? "{knob}" : p))].join("/") : url.pathname;
  const route = `${method} ${pattern}`;
  if (!world.has(route)) return problem(404, `there is nothing at ${url.pathname}`);
  const handler = HANDLERS[route];
  if (!handler) return problem(404, `there is nothing at ${url.pathname}`);
  return handler({ world, url, parts, json, send, problem, response });
}

const HANDLERS = {
  "GET /api/v1": ({ world, send }) => send(200, { routes: ROUTES.filter((r) => world.has(r)).map((r) => ({ method: r.split(" ")[0], path: r.split(" ")[1], doc: "" })) }),
  "GET /api/v1/graph": ({ world, send }) => send(200, world.graph()),
  "GET /api/v1/stages": ({ world, send }) => send(200, world.full()),
  "GET /api/v1/overload": ({ world, send }) => send(200, { mode: world.mode }),
  "PUT /api/v1/overload": ({ world, json, send }) => {
    world.mode = json.mode;
    send(200, { mode: world.mode });
  },
  "GET /api/v1/decisions": ({ world, url, send }) => {
    const { page, next } = world.page("/api/v1/decisions", world.decisions(), url.searchParams);
    send(200, { decisions: page, next });
  },
  "GET /api/v1/changes": ({ world, url, send }) => {
    const { page, next } = world.page("/api/v1/changes", world.acts, url.searchParams);
    send(200, { changes: page, next });
  },
  "GET /api/v1/alerts": ({ world, send }) => send(200, world.alerts()),
  "GET /api/v1/history": ({ world, url, send }) => send(200, world.history(url.searchParams)),
  "GET /api/v1/profile": ({ world, send }) => send(200, world.profile()),
  "GET /api/v1/requests/slowest": ({ world, send }) => send(200, world.requests()),
  "GET /api/v1/config": ({ world, send }) => send(200, world.config()),
  "POST /api/v1/save": ({ world, json, send, problem }) => {
    const knobs = [...world.knobs].map(([name, k]) => ({ owner: name.split(" ")[0], knob: name.split(" ")[1], value: k.value + world.evil, expires_at: k.until }));
    if (world.options.broken) return problem(422, "made-up.yaml:8:5: this value is written as ${TIME}");
    const saved = knobs.filter((k) => !k.expires_at).map(({ expires_at, ...k }) => k);
    const changes = saved.map((k) => `-     ${k.knob}: old   # ${k.owner}\n+     ${k.knob}: ${k.value}   # ${k.owner}\n`).join("");
    return send(200, { preview: json.preview === true, file: "made-up.yaml", changes, saved, left: knobs.filter((k) => k.expires_at) });
  },
  "GET /api/v1/reload": ({ world, send }) => send(200, world.reloads),
  "POST /api/v1/reload": ({ world, json, send }) => {
    setTimeout(() => world.reload(json.preview === true), 20);
    send(200, { id: world.reloads.done + 1, preview: json.preview === true });
  },
  "GET /api/v1/stages/{stage}/queue": ({ world, send }) => send(200, { oldest: [{ age: 0.031, class: world.classes[0], deadline_left: 0.2, type: "http.request" }, { age: 0.02, class: world.classes[1], deadline_left: null, type: "http.request" }] }),
  "GET /api/v1/stages/{stage}/knobs": ({ world, parts, send }) => send(200, { knobs: world.knobList(ownerOf(parts)) }),
  "PUT /api/v1/stages/{stage}/knobs/{knob}": ({ world, parts, json, send, problem }) => {
    const owner = ownerOf(parts);
    const knob = world.knobList(owner).find((k) => k.name === parts[6]);
    if (!knob) return problem(404, "there is no such knob");
    if (knob.type === "int" && !/^\d+$/.test(json.value)) return problem(422, `'${json.value}' is not a whole number`);
    world.knobs.set(`${owner} ${parts[6]}`, { value: json.value, until: json.for ? world.now() + 600 : null });
    world.act("set", `${owner}.${parts[6]}`, knob.effective, json.value);
    return send(200, world.knobList(owner).find((k) => k.name === parts[6]));
  },
  "DELETE /api/v1/stages/{stage}/knobs/{knob}": ({ world, parts, send }) => {
    world.knobs.delete(`${ownerOf(parts)} ${parts[6]}`);
    return send(200, world.knobList(ownerOf(parts)).find((k) => k.name === parts[6]));
  },
  "POST /api/v1/undo": ({ world, send, problem }) => {
    const last = world.acts.find((a) => !a.undone);
    if (!last) return problem(409, "there is nothing to undo");
    last.undone = true;
    for (const key of world.knobs.keys()) if (key.replace(" ", ".") === last.target) world.knobs.delete(key);
    return send(200, last);
  },
  "GET /events": ({ world, response }) => {
    response.writeHead(200, { "Content-Type": "text/event-stream", "Cache-Control": "no-store", Connection: "close" });
    response.write(`retry: 1000\n\nid: ${world.eventId}\nevent: hello\ndata: ${JSON.stringify({ uptime_seconds: world.up(), name: world.graph().name, version: "0", graph: 1, start: world.started })}\n\n`);
    world.streams.add(response);
    response.on("close", () => world.streams.delete(response));
  },
};
for (const route of ["GET /api/v1/stages/{stage}/knobs", "PUT /api/v1/stages/{stage}/knobs/{knob}", "DELETE /api/v1/stages/{stage}/knobs/{knob}"])
  for (const owner of ["groups/{group}", "classes/{class}"]) HANDLERS[route.replace("stages/{stage}", owner)] = HANDLERS[route];
for (const verb of ["pause", "resume", "drain"])
  HANDLERS[`POST /api/v1/stages/{stage}/${verb}`] = ({ world, parts, send }) => {
    world.act(verb, parts[4], "", "");
    send(200, {});
  };
