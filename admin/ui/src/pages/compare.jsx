// SPDX-License-Identifier: MIT
// Two stages, or two time ranges, on the same charts with a common zero, and the ratios of their means.

import { Chart } from "../chart.jsx";
import { clock, count, NONE, rate, seconds, percent } from "../format.js";
import { epoch, graph, serverNow } from "../live.js";
import { Absent, Card, Select } from "../parts.jsx";
import { RANGES, route, setParams } from "../route.js";
import { column, stats } from "../series.js";
import { useFrame } from "../use.js";

const ROWS = [
  ["in", "In", (v) => `${rate(v)}/s`], ["done", "Done", (v) => `${rate(v)}/s`], ["shed", "Shed", (v) => `${rate(v)}/s`],
  ["wait_p50", "Wait, p50", seconds], ["wait_p99", "Wait, p99", seconds], ["service_p50", "Service, p50", seconds], ["service_p99", "Service, p99", seconds],
  ["queue", "Queue", count], ["threads", "Threads", (v) => (v === null ? NONE : v.toFixed(1).replace(/\.0$/, ""))], ["busy", "Busy", percent],
];
const AGO = [["0", "now"], ["300", "5 min ago"], ["900", "15 min ago"], ["3600", "1 h ago"], ["10800", "3 h ago"]];

// The time range of one side of the comparison, from the parameters. It is `length` seconds long
// and ends `aago` or `bago` seconds before `base`.
function sideOf(params, side, base) {
  const length = Object.hasOwn(RANGES, params.length) ? RANGES[params.length] : 300;
  const ago = Number(params[`${side}ago`]) || 0;
  if (!ago) return { range: Object.keys(RANGES).find((k) => RANGES[k] === length) };
  return { from: base - ago - length, to: base - ago };
}

export function Compare() {
  const { params } = route.value;
  const g = graph.value;
  if (!g) return <Absent>Waiting for the first answer.</Absent>;
  const pools = g.stages.filter((s) => s.placement === "pool" || s.placement === "group");
  const first = (pools.at(-1) || g.stages[0]).name, second = (pools.at(-2) || pools[0] || g.stages[0]).name;
  const a = params.a || first, b = params.b || (params.a || Number(params.bago) > 0 ? a : second);
  const base = Number(params.at) || Math.round(serverNow() / 60) * 60;
  return (
    <>
      <div class="page-head"><h1>Compare</h1>
        <Select id="cmp-length" label="Length" value={params.length || "5m"} options={Object.keys(RANGES)} onChange={(v) => setParams({ length: v })} /></div>
      <div class="sides">
        <Side side="a" name={a} params={params} names={g.stages.map((s) => s.name)} />
        <Side side="b" name={b} params={params} names={g.stages.map((s) => s.name)} />
      </div>
      <Both key={`${a} ${b} ${epoch.value}`} a={a} b={b} pa={sideOf(params, "a", base)} pb={sideOf(params, "b", base)} />
    </>
  );
}

function Side({ side, name, params, names }) {
  const letter = side.toUpperCase();
  return (
    <fieldset class="side">
      <legend>{letter}</legend>
      <Select id={`cmp-${side}`} label="Stage" value={name} options={names} onChange={(v) => setParams({ [side]: v })} />
      <Select id={`cmp-${side}-ago`} label="Ended" value={params[`${side}ago`] || "0"} options={AGO}
        onChange={(v) => setParams({ [`${side}ago`]: v, at: Math.round(serverNow() / 60) * 60 })} />
    </fieldset>
  );
}

function Both({ a, b, pa, pb }) {
  const A = useFrame(a, pa), B = useFrame(b, pb);
  if (!A.frame || !B.frame) return <Absent>Reading the history …</Absent>;
  if (A.frame.at.length < 2 && B.frame.at.length < 2) return <Absent>No samples in these ranges{A.reach === "page" ? ": this server keeps no history, so they begin when this page was opened" : ""}.</Absent>;
  const names = [`A ${a}`, `B ${b}`];
  const wide = overlay(A, B);
  const chart = (title, unit, field) => (
    <Chart title={title} unit={unit} relative at={wide.at} range={{ from: 0, to: wide.length }} sync="compare"
      series={[{ name: names[0], data: wide.a(column(A.frame, a, field)) }, { name: names[1], data: wide.b(column(B.frame, b, field)), style: 1 }]} />
  );
  return (
    <>
      <p class="lead">A: {a}, {clock(A.range.from)} to {clock(A.range.to)}. B: {b}, {clock(B.range.from)} to {clock(B.range.to)}.</p>
      <section class="charts" aria-label="Both over time">
        <h2 class="hidden">Both over time</h2>
        {chart("In", "rate", "in")}
        {chart("Done", "rate", "done")}
        {chart("Shed", "rate", "shed")}
        {chart("Wait, p99", "seconds", "wait_p99")}
        {chart("Service, p99", "seconds", "service_p99")}
        {chart("Queue", "count", "queue")}
      </section>
      <Card title="Means" id="means-title" hint="Means of the samples in each range; B relative to A.">
        <div class="table-scroll" role="group" aria-labelledby="means-title" tabIndex={0}>
          <table><thead><tr><th scope="col">value</th><th scope="col" class="num">A</th><th scope="col" class="num">B</th><th scope="col" class="num">B ÷ A</th></tr></thead>
            <tbody>{ROWS.map(([f, label, show]) => <Row key={f} label={label} show={show} x={stats(column(A.frame, a, f))} y={stats(column(B.frame, b, f))} />)}</tbody></table>
        </div>
      </Card>
    </>
  );
}

function Row({ label, show, x, y }) {
  const ratio = x && y && x.mean > 0 ? y.mean / x.mean : null;
  const mark = ratio === null ? "" : ratio > 1.1 ? "▲ " : ratio < 0.9 ? "▼ " : "";
  return <tr><th scope="row">{label}</th><td class="num">{x ? show(x.mean) : NONE}</td><td class="num">{y ? show(y.mean) : NONE}</td>
    <td class="num">{ratio === null ? NONE : `${mark}× ${ratio.toFixed(2)}`}</td></tr>;
}

// Put both sides on one time axis that starts at 0. The axis has the times of both sides; the
// columns of a side have values only at its own times.
function overlay(A, B) {
  const of = (F) => F.frame.at.map((t) => Math.round((t - F.range.from) * 10) / 10);
  const ta = of(A), tb = of(B);
  const at = [...new Set([...ta, ...tb])].filter((t) => t >= 0).sort((x, y) => x - y);
  const spread = (times) => (data) => {
    const by = new Map(times.map((t, i) => [t, data[i]]));
    return at.map((t) => (by.has(t) ? by.get(t) : undefined)); // uPlot draws a line across undefined, and a gap for null
  };
  return { at, a: spread(ta), b: spread(tb), length: Math.max(at.at(-1) || 1, 10) };
}
