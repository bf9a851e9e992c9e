/* SPDX-License-Identifier: MIT */
// Current rates and percentiles, derived from totals.
//
// /api/v1/stages returns totals since the start. A model stores the last few answers and subtracts
// their totals. The results are rates over RATE_S and percentiles over QUANTILE_S and, from two
// consecutive answers, the same samples that /api/v1/history has. If the uptime has decreased,
// another server answers at this address. If a total has decreased or the stages differ, the same
// server runs another graph after a reload. In both cases all earlier answers are discarded.

const RATE_S = 5;
const QUANTILE_S = 10;

export class Model {
  constructor() {
    this.forget();
  }

  forget() {
    this.answers = []; // newest last
  }

  // Returns "server" or "graph" if this answer is from another server or graph than the last one,
  // else "".
  add(answer) {
    let last = this.answers.at(-1);
    const other = !last ? "" : answer.uptime_seconds < last.uptime_seconds ? "server" : isOfSame(answer, last) ? "" : "graph";
    if (other) {
      this.forget();
      last = null;
    }
    if (last && answer.uptime_seconds === last.uptime_seconds) this.answers.pop();
    answer.byName = new Map(answer.stages.map((s) => [s.name, s]));
    this.answers.push(answer);
    while (this.answers.length > 2 && this.age(1) > QUANTILE_S) this.answers.shift();
    return other;
  }

  age(i) {
    return this.answers.at(-1).uptime_seconds - this.answers[i].uptime_seconds;
  }

  // Returns the newest answer that is at least `s` seconds old, or else the oldest one.
  before(s) {
    for (let i = this.answers.length - 2; i > 0; i--) if (this.age(i) >= s) return this.answers[i];
    return this.answers[0];
  }

  // Current values, per stage and in total. null before the second answer.
  now() {
    const last = this.answers.at(-1);
    if (!last) return null;
    const old = this.before(RATE_S);
    const older = this.before(QUANTILE_S);
    const dt = last.uptime_seconds - old.uptime_seconds;
    if (!(dt > 0)) return null;
    const stages = last.stages.map((s) =>
      stageNow(s, old.byName.get(s.name), older.byName.get(s.name), dt));
    const byName = new Map(stages.map((s) => [s.name, s]));
    const groups = (last.groups || []).map((g) => groupNow(g, old.groups?.find((o) => o.name === g.name), byName, dt));
    return { at: last.time, stages, all: sumUp(stages), byName, groups, process: processNow(last, old, dt) };
  }

  // The sample between the last two answers, in the form of a `tick` event with classes; or null.
  sample() {
    const [old, last] = this.answers.slice(-2);
    if (!last || !(last.uptime_seconds > old.uptime_seconds)) return null;
    const dt = last.uptime_seconds - old.uptime_seconds;
    return { at: last.time, step: dt,
      stages: last.stages.map((s) => sampleOf(stageNow(s, old.byName.get(s.name), old.byName.get(s.name), dt))) };
  }
}

// Whether two answers are from one graph: both list the same stages and classes in the same order,
// and no total decreases.
function isOfSame(answer, last) {
  const sum = (s) => total(s.classes, (c) => c.offered_total + c.completed_total);
  const names = (s) => [s.name, s.use, ...s.classes.map((c) => c.name), ...s.links.map((l) => l.outlet)].join();
  return answer.stages.length === last.stages.length &&
    answer.stages.every((s, i) => names(s) === names(last.stages[i]) && sum(s) >= sum(last.stages[i]));
}

// What the process uses; `cpu` is in cores. null if the server does not tell.
function processNow(last, old, dt) {
  return last.process ? { ...last.process, cpu: per(last.process_cpu_seconds, old.process_cpu_seconds, dt) } : null;
}

const per = (now, then, dt) => Math.max(0, now - (then || 0)) / dt;
const total = (list, f) => list.reduce((sum, x) => sum + f(x), 0);

function stageNow(s, old, older, dt) {
  old = old || s;
  const classes = s.classes.map((c, i) => classNow(c, old.classes[i], older?.classes[i], dt));
  const merged = (key) => quantiles(s.classes.map((c) => c[key]), older?.classes.map((c) => c[key]));
  const shedBy = {};
  for (const c of classes)
    for (const [reason, r] of Object.entries(c.shedBy)) shedBy[reason] = (shedBy[reason] || 0) + r;
  const links = s.links.map((l, i) => ({ ...l, rate: per(l.events_total, old.links[i]?.events_total, dt) }));
  const t = s.threads;
  const done = total(classes, (c) => c.completed);
  const failed = total(classes, (c) => c.failed);
  const own = s.metrics.map((m, i) => ({ ...m,
    rate: m.kind === "counter" ? per(m.value, old.metrics[i]?.value, dt) : null }));
  // Clients that a source has turned away count as shed, although no event was created for them.
  const turnedAway = own.filter((m) => m.turned_away && m.rate > 0);
  const away = total(turnedAway, (m) => m.rate);
  const busyS = per(s.busy_seconds_total, old.busy_seconds_total, dt);
  return {
    ...s, classes, links, shedBy, done, failed, cores: coresNow(s, old, dt),
    shed: total(Object.values(shedBy), (r) => r) + away,
    in: total(classes, (c) => c.offered),
    out: total(links, (l) => l.rate),
    shadow: total(classes, (c) => c.shadow),
    ahead: total(classes, (c) => c.ahead),
    wait: merged("wait_seconds"),
    service: merged("service_seconds"),
    response: s.classes[0]?.response_seconds ? responses(s.classes, older?.classes) : null, // of a source
    fill: s.queue.limit > 0 ? Math.min(1, (s.queue.length + s.held + (s.awaiting || 0)) / s.queue.limit) : 0, // the limit covers all three
    busyShare: t.now > 0 ? Math.min(1, busyS / t.now) : 0,
    widthShare: s.width ? Math.min(1, s.width.in_work / s.width.now) : null,
    refusedBehind: s.width ? per(s.width.refused_total, old.width?.refused_total, dt) : 0,
    costS: done + failed > 0 ? busyS / (done + failed) : null, // thread time per event
    serviceS: meanService(s.classes, old.classes),
    cohort: mean(s, old),
    cohorts: cohortsNow(s, older || s),
    times: timesNow(s.thread_seconds_total, old.thread_seconds_total, dt),
    newFailures: t.failures_total - old.threads.failures_total + t.deaths_total - old.threads.deaths_total,
    unhandled: per(s.unhandled_total, old.unhandled_total, dt),
    own, turnedAway, away,
    hasQueue: s.placement !== "source" && s.placement !== "inline",
  };
}

function classNow(c, old, older, dt) {
  const shedBy = {};
  for (const [reason, n] of Object.entries(c.shed_total)) shedBy[reason] = per(n, old?.shed_total[reason], dt);
  return {
    name: c.name,
    offered: per(c.offered_total, old?.offered_total, dt),
    completed: per(c.completed_total, old?.completed_total, dt),
    failed: per(c.failed_total, old?.failed_total, dt),
    shadow: per(c.shadow_shed_total, old?.shadow_shed_total, dt),
    ahead: per(c.refused_ahead_total, old?.refused_ahead_total, dt),
    shedBy,
    shed: total(Object.values(shedBy), (r) => r),
    queued: c.queued,
    wait: quantiles([c.wait_seconds], older && [older.wait_seconds]),
    service: quantiles([c.service_seconds], older && [older.service_seconds]),
    answers: c.response_seconds && {
      ok: per(c.response_seconds.ok.count, old?.response_seconds?.ok.count, dt),
      shed: per(c.response_seconds.shed.count, old?.response_seconds?.shed.count, dt),
      failed: per(c.response_seconds.failed.count, old?.response_seconds?.failed.count, dt),
      time: responses([c], older && [older]),
    },
  };
}

// The response times of requests that were answered ok, of some classes of a source.
const responses = (classes, then) =>
  quantiles(classes.map((c) => c.response_seconds.ok), then && then.flatMap((c) => (c.response_seconds ? [c.response_seconds.ok] : [])));

// ---- core groups ----

// What each core of a stage or a group does, per second; its busy share.
const coresNow = (x, old, dt) => (x.cores || []).map((c, i) => coreNow(c, old?.cores?.[i], dt));

function coreNow(c, old, dt) {
  const grown = (key) => per(c[key] || 0, (old || c)[key], dt);
  return withMean({
    busy: grown("busy_seconds_total"), visits: grown("visits_total"), urgent: grown("urgent_total"), starved: grown("starved_total"),
    cutGate: grown("cut_by_gate_total"), cutUrgent: grown("cut_by_urgent_total"), cutStarved: grown("cut_by_starved_total"),
    events: grown("events_total"), queued: grown("from_queue_total"), dealt: grown("dealt_total"), moved: grown("moved_total"),
    waiting: c.waiting, oldest: c.oldest_wait_seconds, longest: c.longest_wait_seconds, blocked: c.blocked_total || 0,
    asleep: sleepOf(c.blocked_seconds, c.blocked_in), spareAsleep: sleepOf(c.spare_blocked_seconds, c.spare_blocked_in),
  });
}

// The sleep of a core, or of its spare thread, in a handler; null if it is awake.
const sleepOf = (seconds, stage) => (seconds > 0 ? { seconds, stage } : null);

const withMean = (c) => ({ ...c, aVisit: c.visits > 0 ? c.events / c.visits : null });

// Several cores together: sums, and the longest of their waits. Sleeps are left out.
function together(cores) {
  const sum = {};
  for (const c of cores)
    for (const key of Object.keys(c).filter((k) => k !== "asleep" && k !== "spareAsleep"))
      sum[key] = key === "oldest" || key === "longest" ? Math.max(sum[key] || 0, c[key]) : (sum[key] || 0) + c[key];
  return withMean(sum);
}

function groupNow(g, old, byName, dt) {
  const cores = coresNow(g, old, dt);
  // the last of `cores` may have left the group
  return { ...g, cores, present: cores.slice(0, g.cores_now), all: together(cores),
    stages: g.stages.map((s) => ({ ...s, all: together(byName.get(s.name)?.cores || []) })) };
}

// How many threads were in each state, on average; null for a state that is not counted, or if none is.
const timesNow = (now, then, dt) => (now && then
  ? Object.fromEntries(Object.entries(now).map(([key, n]) => [key, n === null ? null : per(n, then[key], dt)])) : null);

// How many calls of the handler had how many events, recently: { calls, events, rows: [{ from, to, calls }] }. The
// rows are powers of two, from 1 to the largest that occurred; null if the server does not count them.
function cohortsNow(s, older) {
  if (!s.cohort_size) return null;
  const before = new Map(older.cohort_size.buckets);
  const grown = new Map(s.cohort_size.buckets.map(([to, n]) => [to, n - (before.get(to) || 0)]).filter(([, n]) => n > 0));
  const rows = [];
  for (let to = 1; to <= Math.max(0, ...grown.keys()); to *= 2) rows.push({ from: to / 2 + 1, to, calls: grown.get(to) || 0 });
  if (rows.length) rows[0].from = 1;
  return { rows, calls: total(rows, (r) => r.calls), events: s.cohort_size.sum - older.cohort_size.sum };
}

const finite = (x) => (x === Infinity ? 100 : x);

function sampleOf(s) {
  return {
    name: s.name, in: s.in, done: s.done, shed: s.shed, failed: s.failed, ahead: s.ahead,
    queue: s.queue.length, oldest: s.queue.oldest_wait_seconds,
    wait_p50: finite(s.wait.p50), wait_p99: finite(s.wait.p99),
    service_p50: finite(s.service.p50), service_p99: finite(s.service.p99),
    response_p50: finite(s.response?.p50 ?? null), response_p99: finite(s.response?.p99 ?? null),
    busy: s.busyShare, threads: s.threads.now, pressure: s.pressure, degradation: s.degradation,
    classes: s.classes.map((c) => ({ in: c.offered, done: c.completed, shed: c.shed, wait_p99: finite(c.wait.p99),
      response_p99: finite(c.answers?.time.p99 ?? null), good: c.answers?.ok ?? null, refused: c.answers?.shed ?? null, broken: c.answers?.failed ?? null })),
  };
}

// Mean events per handler call since `old`.
function mean(s, old) {
  const calls = s.batches_total - old.batches_total;
  return calls > 0 ? (s.batch_events_total - old.batch_events_total) / calls : null;
}

// Mean service time of the events whose service ended since `old`; null if there are none.
function meanService(classes, old) {
  const grown = (key) => total(classes, (c) => c.service_seconds[key]) - total(old, (c) => c.service_seconds[key]);
  return grown("count") > 0 ? grown("sum") / grown("count") : null;
}

// p50 and p99 of the values added to the histograms `now` since `then`; null if there are none.
function quantiles(now, then) {
  const counts = new Map();
  const add = (list, sign) => {
    for (const h of list || [])
      for (const [le, n] of h.buckets) {
        const key = le === null ? Infinity : le;
        counts.set(key, (counts.get(key) || 0) + sign * n);
      }
  };
  add(now, 1);
  add(then, -1);
  const sorted = [...counts].filter(([, n]) => n > 0).sort((a, b) => a[0] - b[0]);
  const n = total(sorted, ([, c]) => c);
  return { n, p50: quantile(sorted, n, 0.5), p99: quantile(sorted, n, 0.99) };
}

function quantile(sorted, n, q) {
  let seen = 0;
  for (const [le, c] of sorted) {
    seen += c;
    if (seen >= q * n) return le;
  }
  return null;
}

function sumUp(stages) {
  const timed = stages.filter((s) => s.wait.n + s.service.n > 0)
    .map((s) => ({ name: s.name, p99: Math.max(s.wait.p99 || 0, s.service.p99 || 0),
      part: (s.wait.p99 || 0) > (s.service.p99 || 0) ? "wait" : "service" }));
  return {
    requests: total(stages.filter((s) => s.placement === "source"), (s) => s.in),
    shed: total(stages, (s) => s.shed),
    away: total(stages, (s) => s.away),
    shadow: total(stages, (s) => s.shadow),
    failed: total(stages, (s) => s.failed),
    queued: total(stages, (s) => s.queue.length),
    held: total(stages, (s) => s.held),
    inFlight: total(stages, (s) => s.in_flight),
    slowest: timed.sort((a, b) => b.p99 - a.p99)[0] || null,
  };
}
