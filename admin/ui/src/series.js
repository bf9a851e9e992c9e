// SPDX-License-Identifier: MIT
// Samples as columns over time, in the form of /api/v1/history:
//   { step, at: [unix], classes: [names], stages: { NAME: { in: [], ..., classes: [{ in: [], ... }] } } }
// Gaps are null; all columns are as long as `at`.

export const FIELDS = ["in", "done", "shed", "failed", "ahead", "queue", "oldest", "wait_p50", "wait_p99",
  "service_p50", "service_p99", "response_p50", "response_p99", "busy", "threads", "pressure", "degradation"];
const CLASS_FIELDS = ["in", "done", "shed", "wait_p99", "response_p99", "good", "refused", "broken"];
const GAP_STEPS = 3.5; // samples further apart than this many steps are separated by a gap

// Without a prototype, since keys are names from the configuration, such as "constructor".
const byName = (entries = {}) => Object.assign(Object.create(null), entries);

export const emptyFrame = (step, classes = []) => ({ step, at: [], classes, stages: byName() });

export function fromHistory(answer) {
  return { step: answer.step, at: answer.at || [], classes: answer.classes || [], stages: byName(answer.stages) };
}

const nulls = (n) => new Array(n).fill(null);

function columnsOf(frame, name, classes) {
  let c = frame.stages[name];
  if (!c) c = frame.stages[name] = {};
  for (const f of FIELDS) if (!c[f]) c[f] = nulls(frame.at.length);
  if (classes && !c.classes) c.classes = classes.map(() => ({}));
  for (const k of c.classes || []) for (const f of CLASS_FIELDS) if (!k[f]) k[f] = nulls(frame.at.length);
  return c;
}

function every(frame, f) {
  f(frame.at);
  for (const s of Object.values(frame.stages)) {
    for (const [key, column] of Object.entries(s)) if (key !== "classes") f(column);
    for (const k of s.classes || []) for (const column of Object.values(k)) f(column);
  }
}

// Append one sample { at, stages: [{ name, in, ... }] }; keep at most `keep` rows.
export function append(frame, sample, keep) {
  const last = frame.at.at(-1);
  if (last !== undefined && sample.at <= last) return;
  if (last !== undefined && sample.at - last > GAP_STEPS * frame.step) pushRow(frame, last + frame.step, new Map());
  pushRow(frame, sample.at, new Map(sample.stages.map((s) => [s.name, s])));
  const over = frame.at.length - keep;
  if (over > 0) every(frame, (column) => column.splice(0, over));
}

function pushRow(frame, at, samples) {
  for (const [name, s] of samples) columnsOf(frame, name, s.classes);
  const n = frame.at.length;
  for (const [name, columns] of Object.entries(frame.stages)) {
    const s = samples.get(name);
    for (const f of Object.keys(columns)) if (f !== "classes") columns[f][n] = s?.[f] ?? null;
    (columns.classes || []).forEach((k, i) => {
      for (const f of Object.keys(k)) k[f][n] = s?.classes?.[i]?.[f] ?? null;
    });
  }
  frame.at.push(at);
}

// A frame with the rows of `frame`, followed by those rows of `later` that are newer.
export function joined(frame, later) {
  const last = frame.at.at(-1) ?? -Infinity;
  const first = later.at.findIndex((t) => t > last);
  if (first < 0) return frame;
  const out = { step: frame.step, at: [...frame.at, ...later.at.slice(first)], classes: later.classes, stages: byName() };
  const n = frame.at.length, more = later.at.length - first;
  const join = (a, b) => [...(a || nulls(n)), ...(b ? b.slice(first) : nulls(more))];
  for (const name of new Set([...Object.keys(frame.stages), ...Object.keys(later.stages)])) {
    const a = frame.stages[name] || {}, b = later.stages[name] || {};
    const s = out.stages[name] = {};
    for (const f of new Set([...Object.keys(a), ...Object.keys(b)])) if (f !== "classes") s[f] = join(a[f], b[f]);
    const k = b.classes || a.classes;
    if (k) s.classes = k.map((_, i) => Object.fromEntries(Object.keys(k[i]).map((f) => [f, join(a.classes?.[i]?.[f], b.classes?.[i]?.[f])])));
  }
  return out;
}

// The rows within [from, to].
export function cut(frame, from, to) {
  let a = frame.at.findIndex((t) => t >= from);
  if (a < 0) a = frame.at.length;
  let b = frame.at.length;
  while (b > a && frame.at[b - 1] > to) b--;
  if (a === 0 && b === frame.at.length) return frame;
  const out = { step: frame.step, classes: frame.classes, at: frame.at.slice(a, b), stages: byName() };
  for (const [name, s] of Object.entries(frame.stages)) {
    out.stages[name] = {};
    for (const [f, column] of Object.entries(s)) if (f !== "classes") out.stages[name][f] = column.slice(a, b);
    if (s.classes)
      out.stages[name].classes = s.classes.map((k) => Object.fromEntries(Object.entries(k).map(([f, c]) => [f, c.slice(a, b)])));
  }
  return out;
}

// A column of `stage`. If the stage lacks it, all values are null: uPlot draws by index and needs
// columns of equal length.
export const column = (frame, stage, field) => frame.stages[stage]?.[field] || nulls(frame.at.length);

// Combine `field` over the stages `names` with `f`: one number per row, null where no stage has a value.
export function combine(frame, names, field, f) {
  return frame.at.map((_, i) => {
    let out = null;
    for (const name of names) {
      const v = frame.stages[name]?.[field]?.[i];
      if (v !== null && v !== undefined) out = out === null ? v : f(out, v);
    }
    return out;
  });
}

export function stats(values) {
  const known = values.filter((v) => v !== null && v !== undefined).sort((a, b) => a - b);
  if (!known.length) return null;
  return { n: known.length, mean: known.reduce((a, b) => a + b, 0) / known.length,
    min: known[0], max: known.at(-1), median: known[Math.floor(known.length / 2)] };
}
