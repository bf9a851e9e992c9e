// SPDX-License-Identifier: MIT
// One stage: its wait and service times, its admission, the reasons for its pool size, and its knobs.

import { useState } from "preact/hooks";
import { act, isAbsent, stagePath } from "../api.js";
import { Chart } from "../chart.jsx";
import { count, degraded, NONE, percent, rate, seconds, word } from "../format.js";
import { Blocked, Cores } from "../groups.jsx";
import { Knobs } from "../knobs.jsx";
import { acts, decisions, graph, mayAct, now, older, ownerOf } from "../live.js";
import { Absent, actText, Card, Decision, Empty, Mark, RangePicker, Select, whatOf } from "../parts.jsx";
import { href, route } from "../route.js";
import { column } from "../series.js";
import { StuckCall, ThreadTimes } from "../threads.jsx";
import { useAnswer, useFrame } from "../use.js";
import { lostText } from "./overview.jsx";

export function Stage() {
  const { name, params } = route.value;
  const g = graph.value;
  if (!g) return <Absent>Waiting for the first answer.</Absent>;
  const chosen = name || firstOf(g);
  const known = g.stages.find((s) => s.name === chosen);
  return (
    <>
      <div class="page-head">
        <h1>Stage <em>{chosen}</em>{isHeld(known) && <span class="held">{stateOf(known)}</span>}</h1>
        <div class="head-side">
        {mayAct.value && known && <Acts key={chosen} name={chosen} state={stateOf(known)} />}
        <Select id="stage-choice" label="Other stage" value={known ? chosen : ""} options={(known ? [] : [["", "choose one"]]).concat(g.stages.map((s) => s.name))}
          onChange={(v) => { location.hash = href("stage", v, { range: params.range, from: params.from, to: params.to }); }} />
        </div>
      </div>
      {known ? <OneStage key={chosen} name={chosen} params={params} meta={known} /> : <Absent>This server has no stage with that name.</Absent>}
    </>
  );
}

// The stage to show by default: the fullest and busiest one, or else the first with a queue.
function firstOf(g) {
  const pools = g.stages.filter((s) => s.placement === "pool" || s.placement === "group");
  const fullest = now.value?.stages.filter((s) => s.hasQueue).sort((a, b) => b.fill + b.busyShare - a.fill - a.busyShare)[0];
  return (fullest || pools[0] || g.stages[0]).name;
}

function OneStage({ name, params, meta }) {
  const { frame, range, reach } = useFrame(name, params);
  const s = now.value?.byName.get(name);
  const pool = meta.placement === "pool" || meta.placement === "group";
  return (
    <>
      <div class="tools">
        <p class="lead">{s ? aboutOf(s) : meta.summary}</p>
        <RangePicker range={range} />
      </div>
      {s?.trouble && <ul class="alerts" aria-label="Trouble"><li data-level="bad"><Mark kind="bad" size={18} /><span>{s.trouble}</span></li></ul>}
      <Blocked stage={name} />
      {s && <Facts s={s} pool={pool} />}
      {frame && frame.at.length > 1
        ? <Charts name={name} frame={frame} range={range} pool={pool} classes={frame.classes.length ? frame.classes : graph.value.classes}
          limit={s?.queue.limit} slo={s?.slo_seconds} width={s?.width} />
        : <Absent>{frame ? "No samples in this range yet." : "Reading the history …"}</Absent>}
      {reach === "page" && <p class="hint">This server keeps no history: the charts begin when this page was opened.</p>}
      {s?.times && <ThreadTimes times={s.times} />}
      {s?.stuck_call && <StuckCall call={s.stuck_call} />}
      {s && <Classes s={s} />}
      {s && s.cores.length > 0 && (
        <Card title={`Cores of the group ${s.group}`} id="cores-title" hint="What each core does at this stage.">
          <Cores cores={s.cores} n={s.threads.target} by="cores-title" />
        </Card>
      )}
      {meta.use === "http.client" && <Origins name={name} />}
      {s?.cohorts?.calls > 0 && <Cohorts c={s.cohorts} />}
      {pool && s && <Ceiling s={s} />}
      {pool && <Oldest name={name} />}
      <StageFeed name={name} range={range} />
      <Knobs key={name} stage={name} placement={meta.placement} />
    </>
  );
}

function aboutOf(s) {
  return [s.summary, `${s.use}, ${s.placement === "group" ? `group ${s.group}` : s.placement}, ${s.mode}`,
    s.hasQueue ? `admission ${s.admission.policy} (${s.admission.mode})` : "", degraded(s)].filter(Boolean).join(" · ");
}

// ---- pause, resume, drain ----

const stateOf = (s) => now.value?.byName.get(s.name)?.state || s.state;
const isHeld = (s) => Boolean(s && stateOf(s) && stateOf(s) !== "running");

const VERBS = [
  ["pause", "Pause", "Its threads stop taking events; arriving events wait in the queue, up to its limit."],
  ["resume", "Resume", "Its threads take events again."],
  ["drain", "Drain", "New events are refused; waiting events are completed."],
];

function Acts({ name, state }) {
  const [said, setSaid] = useState(null);
  const [sure, setSure] = useState("");
  const go = async (verb) => {
    if (verb !== "resume" && sure !== verb) return setSure(verb);
    setSure("");
    try {
      await act("POST", stagePath(name, verb), {});
      setSaid({ good: true, text: `${verb}: done` });
    } catch (e) {
      setSaid({ text: isAbsent(e) ? `This server cannot ${verb} a stage.` : e.message });
    }
  };
  return (
    <div class="acts" role="group" aria-label="Actions on this stage">
      {VERBS.filter(([verb]) => !state || (verb === "resume") === (state !== "running")).map(([verb, label, help]) => (
        <button key={verb} type="button" title={help} class={sure === verb ? "sure" : ""} onClick={() => go(verb)}
          onBlur={() => setSure((x) => (x === verb ? "" : x))}>{sure === verb ? `${label}? Press again` : label}</button>
      ))}
      <output class={said ? (said.good ? "said good" : "said wrong") : "said"}>{said?.text || ""}</output>
    </div>
  );
}

// ---- numbers now ----

function Facts({ s, pool }) {
  const t = s.threads, spares = t.spares || 0; // an older server does not count them
  const rows = [
    ["In", `${rate(s.in)}/s`, ""],
    ["Done", `${rate(s.done)}/s`, s.failed > 0 ? `${rate(s.failed)}/s failed` : ""],
    ["Shed", `${rate(s.shed)}/s`, [s.away > 0 && `${rate(s.away)}/s turned away`, s.ahead > 0 && `${rate(s.ahead)}/s refused ahead`].filter(Boolean).join(", ")],
    pool && ["Queue", count(s.queue.length), `of ${count(s.queue.limit)}, oldest ${s.queue.length ? seconds(s.queue.oldest_wait_seconds) : NONE}${s.held > 0 ? `; ${count(s.held)} held` : ""}`],
    pool && ["Wait, p99", s.wait.n ? seconds(s.wait.p99) : NONE, s.slo_seconds ? `objective ${seconds(s.slo_seconds)}` : ""],
    ["Service, p99", s.service.n ? seconds(s.service.p99) : NONE, s.cohort > 1.05 ? `${s.cohort.toFixed(1)} events per call` : s.longest_running_seconds > 0 ? `longest now ${seconds(s.longest_running_seconds)}` : ""],
    pool && ["Threads", count(t.now - spares), [`${t.busy} busy, ${t.spinning} spinning, ${t.idle} idle`, spares > 0 && `with ${count(spares)} spare for blocked cores`]
      .filter(Boolean).join(" ") + `; target ${t.target} of ${t.min}–${t.max}`],
    s.clients && ["Full threads", `${count(s.clients.full)} of ${count(s.clients.threads)}`, [`per_thread ${count(s.clients.per_thread)}`,
      s.clients.idle > 0 && `${count(s.clients.idle)} with an idle client`, s.clients.waiting > 0 && `${count(s.clients.waiting)} clients wait`].filter(Boolean).join("; ")],
    pool && ["Busy", percent(s.busyShare), `pressure ${percent(s.pressure)}`],
    s.width && ["Under way", `${count(s.width.in_work)} of ${count(s.width.now)}`, [s.width.why, `bounds ${count(s.width.min)}–${count(s.width.max)}`,
      s.refusedBehind > 0 && `${rate(s.refusedBehind)}/s refused by the other side`].filter(Boolean).join("; ")],
    s.children.spawned_total > 0 && ["Awaiting", count(s.awaiting), `${count(s.children.in_flight)} children in flight`],
  ].filter(Boolean);
  // Metrics of the type of the stage: first those that change, and last, folded, those that are still 0.
  const nameOf = (m) => word(m.name.replace(/_total$/, ""));
  const textOf = (m) => [nameOf(m), m.rate === null ? count(m.value) : `${rate(m.rate)}/s`,
    [m.unit && m.unit !== "events" ? m.unit : "", m.rate === null ? "" : `${count(m.value)} in total`].filter(Boolean).join(", ")];
  const used = s.own.filter((m) => m.value !== 0), unused = s.own.filter((m) => m.value === 0);
  return (
    <section class="facts-card" aria-label="Numbers now">
      <FactList rows={rows} />
      {used.length > 0 && <FactList rows={used.map(textOf)} own />}
      {unused.length > 0 && <details class="fixed"><summary>{unused.length} {used.length > 0 ? "others " : ""}still 0: {unused.map((m) => nameOf(m)).join(", ")}</summary><FactList rows={unused.map(textOf)} own /></details>}
    </section>
  );
}

const FactList = ({ rows, own }) => (
  <dl class={own ? "facts own" : "facts"}>
    {rows.map(([k, v, note]) => <div key={k}><dt>{k}</dt><dd>{v}</dd>{note && <dd class="fact-note">{note}</dd>}</div>)}
  </dl>
);

// ---- charts ----

const earlier = (x) => (x.before_restart ? " (before the restart)" : "");

function marksOf(name, range) {
  const within = (t) => t >= range.from && t <= range.to;
  const made = (decisions.value || []).filter((d) => d.stage === name && within(d.time))
    .map((d) => ({ at: d.time, text: `${whatOf(d)} by ${d.actor}: ${d.rule}${earlier(d)}` }));
  const done = (acts.value || []).filter((a) => ownerOf(a.target) === name && within(a.at))
    .map((a) => ({ at: a.at, text: `${a.actor}: ${actText(a)}${earlier(a)}` }));
  return made.concat(done);
}

function Charts({ name, frame, range, pool, classes, limit, slo, width }) {
  const col = (f) => column(frame, name, f);
  const marks = marksOf(name, range);
  const byClass = frame.stages[name]?.classes;
  const common = { at: frame.at, range, marks, sync: "stage" };
  const several = byClass && classes.length > 1;
  const answers = several && byClass.some((c) => c.good?.some((v) => v !== null));
  const perClass = (f) => classes.map((c, i) => ({ name: c, data: byClass[i]?.[f] || frame.at.map(() => null) }));
  return (
    <section class="charts" aria-label="Over time">
      <h2 class="hidden">Over time</h2>
      <Chart {...common} title="Events" unit="rate" series={[{ name: "in", data: col("in") },
        { name: "done", data: col("done"), style: 1 }, { name: "shed", data: col("shed"), style: 2 }]} />
      {pool && <Chart {...common} title="Wait" unit="seconds" note={slo ? `objective ${seconds(slo)}` : undefined}
        series={[{ name: "p99", data: col("wait_p99"), fill: true }, { name: "p50", data: col("wait_p50"), style: 1 },
          { name: "oldest", data: col("oldest"), style: 5 }]} />}
      <Chart {...common} title="Service" unit="seconds" series={[{ name: "p99", data: col("service_p99"), fill: true },
        { name: "p50", data: col("service_p50"), style: 1 }]} />
      {several && pool && <Chart {...common} title="Wait by class, p99" unit="seconds" series={perClass("wait_p99")} />}
      {several && answers && <Chart {...common} title="Good answers, by class" unit="rate" series={perClass("good")} />}
      {several && answers && <Chart {...common} title="Refused answers, by class" unit="rate" series={perClass("refused")} />}
      {several && <Chart {...common} title="Shed by class" unit="rate" series={perClass("shed")} />}
      {pool && <Chart {...common} title="Queue" unit="count" note={limit ? `limit ${count(limit)}` : undefined}
        series={[{ name: "waiting", data: col("queue"), fill: true }]} />}
      {pool && <Chart {...common} title="Threads" unit="count" series={[{ name: "threads", data: col("threads") },
        { name: "busy", data: busyThreads(col("busy"), col("threads")), style: 1 }]} />}
      {width && <Chart {...common} title="Width" unit="count" note={`bounds ${count(width.min)}–${count(width.max)}`}
        series={[{ name: "width", data: widths(name, frame, width.now) }]} />}
      {pool && <Chart {...common} title="Pressure and degradation" unit="share" series={[{ name: "pressure", data: col("pressure") },
        { name: "degradation", data: col("degradation"), style: 1 }]} />}
    </section>
  );
}

const busyThreads = (busy, threads) => busy.map((b, i) => (b === null || threads[i] === null ? null : b * threads[i]));

// The width at each time of the frame. Only decisions change the width, so its earlier values
// follow from the current one and the decisions.
function widths(name, frame, now) {
  const made = (decisions.value || []).filter((d) => d.stage === name && d.action === "width"); // newest first
  const oldest = older.value.decisions ? decisions.value.at(-1).time : 0; // earlier decisions have not been read
  const threads = column(frame, name, "threads"); // null before the server was started
  return frame.at.map((t, i) => (t < oldest || threads[i] === null ? null : made.findLast((d) => d.time > t)?.from ?? now));
}

// ---- classes, the ceiling, the oldest ----

function Classes({ s }) {
  const q = (x) => (x.n > 0 ? `${seconds(x.p50)} · ${seconds(x.p99)}` : NONE);
  const columns = [["in/s", (c) => rate(c.offered)], ["done/s", (c) => rate(c.completed)], ["shed/s", lostText], ["failed/s", (c) => rate(c.failed)],
    ["queued", (c) => count(c.queued)], ["wait p50 · p99", (c) => q(c.wait)], ["service p50 · p99", (c) => q(c.service)]];
  return (
    <Card title="Classes" id="classes-title" hint="Most important first.">
      <div class="table-scroll" role="group" aria-labelledby="classes-title" tabIndex={0}>
        <table class="cards">
          <thead><tr><th scope="col">class</th>{columns.map(([h]) => <th key={h} scope="col" class="num">{h}</th>)}</tr></thead>
          <tbody>{s.classes.map((c) => (
            <tr key={c.name}><th scope="row">{c.name}</th>{columns.map(([h, f]) => <td key={h} class="num" data-label={h}>{f(c)}</td>)}</tr>
          ))}</tbody>
        </table>
      </div>
    </Card>
  );
}

// How many events the calls of the handler got.
function Cohorts({ c }) {
  const most = Math.max(...c.rows.map((r) => r.calls));
  return (
    <Card title="Batches" id="cohorts-title" hint={`Events per call of the handler, ${(c.events / c.calls).toFixed(1)} on average; calls of the last 10 s.`}>
      <div class="table-scroll" role="group" aria-labelledby="cohorts-title" tabIndex={0}>
        <table class="cohorts">
          <thead><tr><th scope="col" class="num">events</th><th scope="col">calls</th><th scope="col" class="num">share</th></tr></thead>
          <tbody>{c.rows.map((r) => (
            <tr key={r.to}><th scope="row" class="num">{r.from === r.to ? r.to : `${r.from}–${r.to}`}</th>
              <td><svg viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="share-all" width="100" height="10" /><rect class="share-part" width={(100 * r.calls / most).toFixed(2)} height="10" /></svg></td>
              <td class="num">{percent(r.calls / c.calls)}</td></tr>
          ))}</tbody>
        </table>
      </div>
    </Card>
  );
}

// The utilisation law: the maximum throughput of the threads, or of the width of a stage that holds events, with the
// numbers in it.
function Ceiling({ s }) {
  return s.width ? <WidthCeiling s={s} /> : <PoolCeiling s={s} />;
}

function WidthCeiling({ s }) {
  const { now: n, max, why } = s.width;
  return (
    <Card title="Ceiling" id="ceiling-title" hint="Width ÷ service time: the maximum throughput of the stage at its present width.">
      {s.serviceS ? (
        <div class="formula">
          <p><span class="term">{count(n)}<small>at once</small></span><span class="op">÷</span>
            <span class="term">{seconds(s.serviceS)}<small>service time</small></span><span class="op">=</span>
            <span class="term strong">{rate(n / s.serviceS)}<small>events/s at most</small></span></p>
          <p class="sentence">It handles {rate(s.done + s.failed)}/s, with {count(s.width.in_work)} under way.{" "}
            {max > n ? `Its policy may widen it to ${count(max)}.` : "The width is at its maximum."}
            {s.in > (s.done + s.failed) * 1.05 ? ` ${rate(s.in)}/s are offered.` : ""}</p>
          {(why || s.admission.why) && <p class="inputs">{[why, s.admission.why].filter(Boolean).join("; ")}</p>}
        </div>
      ) : <p class="absent">No hold has ended recently, so there is no service time to divide by.</p>}
    </Card>
  );
}

function PoolCeiling({ s }) {
  const { now: n, max } = s.threads;
  const served = s.done + s.failed;
  return (
    <Card title="Ceiling" id="ceiling-title" hint="Threads ÷ thread time per event: the maximum throughput of the pool.">
      {s.costS ? (
        <div class="formula">
          <p><span class="term">{count(n)}<small>threads now</small></span><span class="op">÷</span>
            <span class="term">{seconds(s.costS)}<small>thread time per event</small></span><span class="op">=</span>
            <span class="term strong">{rate(n / s.costS)}<small>events/s at most</small></span></p>
          <p class="sentence">It handles {rate(served)}/s, {percent(served * s.costS / n)} of that.{" "}
            {max > n ? `With all ${count(max)} threads it could reach ${rate(max / s.costS)}/s, unless they compete for the same cores.` : "The pool has reached its maximum number of threads."}
            {s.in > served * 1.05 ? ` ${rate(s.in)}/s are offered.` : ""}</p>
          {s.admission.why && <p class="inputs">{s.admission.why}</p>}
        </div>
      ) : <p class="absent">Nothing was handled recently, so there is no time per event to divide by.</p>}
    </Card>
  );
}

function Oldest({ name }) {
  const { data, absent, error } = useAnswer(`${stagePath(name, "queue")}?n=20`, 2, "/api/v1/stages/{stage}/queue");
  const list = data?.oldest || [];
  return (
    <Card title="Oldest in the queue" id="oldest-title">
      {absent && <Absent>This server does not list the events of a queue.</Absent>}
      {error && !data && <Absent>{error}</Absent>}
      {data && list.length === 0 && <p class="absent">The queue is empty.</p>}
      {list.length > 0 && (
        <div class="table-scroll" role="group" aria-labelledby="oldest-title" tabIndex={0}>
          <table class="wraps"><thead><tr>{["waiting for", "class", "time left", "type"].map((h) => <th key={h} scope="col">{h}</th>)}</tr></thead>
            <tbody>{list.map((e, i) => <tr key={i}><td>{seconds(e.age)}</td><td>{e.class}</td>
              <td>{e.deadline_left === null || e.deadline_left === undefined ? "no deadline" : seconds(e.deadline_left)}</td><td>{e.type}</td></tr>)}</tbody></table>
        </div>
      )}
    </Card>
  );
}

// Each address of an origin: what http.client knows of it.
function Origins({ name }) {
  const { data, absent, error } = useAnswer(stagePath(name, "rows"), 2, "/api/v1/stages/{stage}/rows");
  const rows = data?.rows || [];
  const last = (o) => (o.last_failure ? `${o.last_failure}, ${seconds(Math.max(0, Date.now() / 1000 - o.last_failure_time))} ago` : NONE);
  const columns = [["state", (o) => (o.state === "in" ? "in" : <><Mark kind={o.state === "out" ? "bad" : "warn"} size={14} /> {o.state}</>)],
    ["under way", (o) => `${count(o.busy)} (${percent(o.share)})`], ["connections", (o) => count(o.open_connections)], ["requests", (o) => count(o.requests_total)],
    ["first byte p50 · p99", (o) => (o.ttfb_p99_seconds > 0 ? `${seconds(o.ttfb_p50_seconds)} · ${seconds(o.ttfb_p99_seconds)}` : NONE)],
    ["failed", (o) => count(o.failures_total)], ["went elsewhere", (o) => count(o.retried_total)], ["left out", (o) => count(o.ejected_total)], ["last failure", last]];
  return (
    <Card title="Origins" id="origins-title" hint="Since the start, all loops together.">
      {absent && <Absent>This server does not list its origins.</Absent>}
      {error && !data && <Absent>{error}</Absent>}
      {data && !rows.length && <p class="absent">No origin has an address now.</p>}
      {rows.length > 0 && (
        <div class="table-scroll" role="group" aria-labelledby="origins-title" tabIndex={0}>
          <table class="cards">
            <thead><tr><th scope="col">origin</th>{columns.map(([h]) => <th key={h} scope="col" class="num">{h}</th>)}</tr></thead>
            <tbody>{rows.map((o) => (
              <tr key={o.origin + o.address}><th scope="row">{o.origin}{o.origin.endsWith(o.address) ? "" : ` (${o.address})`}</th>
                {columns.map(([h, f]) => <td key={h} class="num" data-label={h}>{f(o)}</td>)}</tr>
            ))}</tbody>
          </table>
        </div>
      )}
    </Card>
  );
}

function StageFeed({ name, range }) {
  const list = (decisions.value || []).filter((d) => d.stage === name && (range.live || (d.time >= range.from && d.time <= range.to)));
  return (
    <Card title="Decisions" id="stage-feed-title" hint="Shown as flags on the time axes."
      tools={<a class="more" href={href("timeline", "", { stage: name })}>Show on the timeline</a>}>
      <ol class="feed">
        {list.slice(0, 8).map((d) => <Decision key={d.id} d={d} withStage={false} />)}
        {!list.length && <Empty>No decisions about this stage{range.live ? " yet" : " in this range"}.</Empty>}
      </ol>
    </Card>
  );
}
