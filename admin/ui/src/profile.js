// SPDX-License-Identifier: MIT
// The profile of a window of time: the difference of two answers of /api/v1/profile (docs/api.md).

export const WINDOWS = { "10s": 10, "1m": 60, all: Infinity };
const FINE_S = 12; // all answers of this age are kept, and older ones 10 s apart
const COARSE_S = 10;
const KEEP_S = 75;

// The answers to keep, oldest first, after `answer` has come. Those of an earlier graph are of no use.
export function kept(answers, answer) {
  if (answers.at(-1) === answer) return answers;
  const all = [...answers.filter((a) => a.since === answer.since && a.counted_seconds < answer.counted_seconds), answer];
  const age = (a) => answer.counted_seconds - a.counted_seconds;
  let last = Infinity;
  return all.filter((a) => {
    if (age(a) > KEEP_S || (age(a) > FINE_S && last - age(a) < COARSE_S)) return false;
    last = age(a);
    return true;
  });
}

// The answer at which the window begins: null is the begin of all counts.
export function baseOf(answers, length) {
  const now = answers.at(-1);
  if (length === Infinity || answers.length < 2) return null;
  return answers.slice(0, -1).findLast((a) => now.counted_seconds - a.counted_seconds >= length - 0.5) || answers[0];
}

const grown = (a, b) => Math.max(0, (b || 0) - (a || 0));
const COUNTS = ["started", "restarted", "completed", "shed", "failed", "spawned"];

// The upper bound of the longest wait: the highest bucket that has grown; null: nothing has waited.
function longest(then, now) {
  const was = new Map((then || []).map(([bound, n]) => [bound, n]));
  const last = now.findLast(([bound, n]) => n > (was.get(bound) || 0));
  return last ? last[0] ?? Infinity : null;
}

function rowOf(then, now, span) {
  const a = then?.wait_seconds, b = now.wait_seconds;
  const row = { on: now.on, kind: now.kind, waits: grown(a?.count, b.count), waited: grown(a?.sum, b.sum),
    longest: longest(a?.buckets, b.buckets), busy: grown(then?.busy_seconds_total, now.busy_seconds_total) / span };
  for (const c of COUNTS) row[c] = grown(then?.[`${c}_total`], now[`${c}_total`]);
  row.queue = row.waited / span;
  return row;
}

const isActive = (r) => COUNTS.some((c) => r[c] > 0);

function sumOf(rows) {
  const sum = { on: "all", kind: "all", longest: null, waits: 0, waited: 0, queue: 0, busy: 0 };
  for (const c of COUNTS) sum[c] = 0;
  for (const r of rows) {
    for (const c of [...COUNTS, "waits", "waited", "queue", "busy"]) sum[c] += r[c];
    if (r.longest !== null && (sum.longest === null || r.longest > sum.longest)) sum.longest = r.longest;
  }
  return sum;
}

// The stages, each with the rows of the threads that did something, and their sum.
export function stagesOf(then, now, span) {
  return now.stages.map((s) => {
    const was = new Map((then?.stages.find((x) => x.name === s.name)?.rows || []).map((r) => [r.on, r]));
    const rows = s.rows.map((r) => rowOf(was.get(r.on), r, span)).filter(isActive);
    return { name: s.name, placement: s.placement, group: s.group, waiting: s.waiting, rows, sum: sumOf(rows) };
  });
}

// The links over which something was sent, each with its arcs.
export function linksOf(then, now) {
  const key = (a) => JSON.stringify([a.from, a.outlet, a.on]);
  const was = new Map((then?.arcs || []).map((a) => [key(a), a]));
  const links = new Map();
  for (const a of now.arcs) {
    const old = was.get(key(a)), sent = grown(old?.sent_total, a.sent_total);
    const arc = { on: a.on, sent, refused: Math.max(0, grown(old?.offered_total, a.offered_total) - sent) };
    if (!arc.sent && !arc.refused) continue;
    const id = JSON.stringify([a.from, a.outlet]);
    if (!links.has(id)) links.set(id, { id, from: a.from, outlet: a.outlet, to: a.to, arcs: [], sent: 0, refused: 0 });
    const link = links.get(id);
    link.arcs.push(arc);
    link.sent += arc.sent;
    link.refused += arc.refused;
  }
  return [...links.values()];
}
