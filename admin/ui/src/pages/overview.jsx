// SPDX-License-Identifier: MIT
// The server at a glance: a line, the main numbers, the process, the classes, the graph, every stage, and the latest decisions.

import { Chart } from "../chart.jsx";
import { bytes, count, degraded, NONE, percent, plural, queueText, rate, seconds, widthText, word } from "../format.js";
import { GraphCard } from "../graph.jsx";
import { Groups } from "../groups.jsx";
import { alerts, bottleneck, decisions, frame, graph, link, now, serverNow } from "../live.js";
import { ClassKnobs } from "../knobs.jsx";
import { Card, Decision, Empty, Mark, StageLink, Time } from "../parts.jsx";
import { FailedReload } from "../reload.jsx";
import { href, route, RANGES } from "../route.js";
import { combine, cut } from "../series.js";
import { firstKnown, useFrame } from "../use.js";
import { isSteered, verdict } from "../verdict.js";

const FEED = 12;

export function Overview() {
  const g = graph.value;
  return (
    <>
      <Verdict />
      <FailedReload brief />
      <Alerts />
      <Numbers />
      <Resources />
      <Classes />
      {g ? <GraphCard graph={g} now={now.value} legend={<Legend />} />
        : <Card title="Graph" id="graph-title"><p class="absent">Waiting for the first answer.</p></Card>}
      <Groups />
      <Card title="Stages" id="stages-title" hint="Rates over 5 s, percentiles over 10 s."><StagesTable /></Card>
      <Card title="Decisions" id="feed-title" hint="What controllers and operators changed, and why."
        tools={<a class="more" href={href("timeline")}>Full timeline</a>}>
        <Feed />
      </Card>
    </>
  );
}

export function currentVerdict() {
  const l = link.value;
  if (l.state === "stale") {
    return { level: "wait", text: l.never ? "No answer from the server. Retrying every second."
      : "No answer from the server. These are its last numbers; retrying every second." };
  }
  if (!graph.value) return { level: "wait", text: "Waiting for the first numbers." };
  return verdict(graph.value, now.value, bottleneck.value, alerts.value?.active);
}

function Verdict() {
  const { level, text, more = [] } = currentVerdict();
  return (
    <section class="verdict" data-level={level} aria-label="Verdict" aria-live="polite">
      <Mark kind={level} size={30} />
      <div><h1>{text}</h1>{more.length > 0 && <p class="details">{more.join(" ")}</p>}</div>
    </section>
  );
}

function Alerts() {
  const told = bottleneck.value?.limits && currentVerdict().more?.join(" ").includes(bottleneck.value.text.slice(1)); // shown above already, with newer numbers
  const active = (alerts.value?.active || []).filter((a) => !(told && a.name === "bottleneck_chronic"));
  if (!active.length) return null;
  return (
    <ul class="alerts" aria-label="Alerts">
      {active.map((a) => (
        <li key={a.id} data-level={a.level}><Mark kind={a.level} size={18} /><span>{a.text}</span><small>since <Time at={a.since} /></small></li>
      ))}
    </ul>
  );
}

function Legend() {
  return (
    <ul class="legend keys" aria-label="How to read the graph">
      <li><i class="key key-rate" />width: rate</li>
      <li><i class="key key-queue" />level: queue</li>
      <li><i class="key key-busy" />ring: busy threads, width in use</li>
      <li><i class="key key-shed" />badge: shed</li>
      {graph.value?.groups?.length > 0 && <li><i class="key key-core" />bar: busy core</li>}
      {now.value?.groups.some((x) => x.cores.some((c) => c.asleep)) && <li><i class="key key-core asleep" />bar: core that sleeps in a handler</li>}
    </ul>
  );
}

// ---- the big numbers ----

const SPARK_S = 300;

function Numbers() {
  const n = now.value, g = graph.value;
  const range = Object.hasOwn(RANGES, route.value.params.range) ? RANGES[route.value.params.range] : SPARK_S;
  const rows = frame.value.version >= 0 ? frame.value.rows : null;
  const end = rows.at.at(-1) ?? serverNow();
  const part = cut(rows, Math.max(rows.at[firstKnown(rows)] ?? 0, end - Math.min(range, 900)), end);
  const all = g ? g.stages.map((s) => s.name) : [];
  const sources = g ? g.stages.filter((s) => s.placement === "source").map((s) => s.name) : [];
  const sum = (a, b) => a + b;
  const worst = n && n.stages.filter((s) => s.wait.n > 0).sort((a, b) => b.wait.p99 - a.wait.p99)[0];
  const minutes = Math.round(Math.min(range, 900) / 60);
  const slowest = n && n.stages.filter((s) => s.response?.n > 0).sort((a, b) => b.response.p99 - a.response.p99)[0];
  return (
    <section class="numbers" aria-label={`Main numbers, with the last ${minutes} minutes`}>
      <Big name="Response, p99" value={slowest ? split(seconds(slowest.response.p99))[0] : NONE} unit={slowest ? split(seconds(slowest.response.p99))[1] : ""}
        at={part.at} data={combine(part, sources, "response_p99", Math.max)} show={seconds}
        note={slowest ? `half within ${seconds(slowest.response.p50)}` : "nothing answered recently"} />
      <Big name="Requests" value={n ? rate(n.all.requests) : NONE} unit="/s" at={part.at}
        data={combine(part, sources, "in", sum)} show={(v) => `${rate(v)}/s`}
        note={n ? (n.all.failed > 0 ? `${rate(n.all.failed)}/s failed` : n.all.away > 0 ? "no admitted request failed" : "none failed") : ""} />
      <Big name="Shed" value={n ? rate(n.all.shed) : NONE} unit="/s" at={part.at} alarm={n?.all.shed > 0}
        data={combine(part, all, "shed", sum)} show={(v) => `${rate(v)}/s`}
        note={n ? (n.all.shadow > 0 ? `plus ${rate(n.all.shadow)}/s in shadow mode` : shedWord(n)) : ""} />
      <Big name="Waiting" value={n ? count(n.all.queued) : NONE} unit="in queues" at={part.at}
        data={combine(part, all, "queue", sum)} show={count} note={n ? `${count(n.all.inFlight)} in flight${n.all.held > 0 ? `, ${count(n.all.held)} held` : ""}` : ""} />
      <Big name="Longest wait, p99" value={worst ? split(seconds(worst.wait.p99))[0] : NONE} unit={worst ? split(seconds(worst.wait.p99))[1] : ""}
        at={part.at} data={combine(part, all, "wait_p99", Math.max)} show={seconds}
        note={worst ? `at ${worst.name}; service ${seconds(worst.service.p99)}` : "nothing waited recently"} />
    </section>
  );
}

// ---- status codes, connections and the process ----

const NEAR = 0.9; // a resource used beyond this share is marked: a guess
const CODES = ["2xx", "3xx", "4xx", "5xx"];

// Sums over the sources of a metric of http.server; null if no source has it.
function ofSources(n, name, key) {
  const list = n.stages.flatMap((s) => s.own.filter((m) => m.name === name)).map((m) => m[key]);
  return list.length ? list.reduce((a, b) => a + b, 0) : null;
}

// One number of the process, with the used share of its limit as a bar.
function Resource({ name, value, note, share = null }) {
  return (
    <div class={share > NEAR ? "resource alarm" : "resource"}>
      <dt>{name}</dt><dd>{value}</dd>
      {share !== null && <dd class="meter" aria-hidden="true"><svg viewBox="0 0 100 4" preserveAspectRatio="none"><rect class="share-all" width="100" height="4" />
        <rect class="meter-part" width={(100 * Math.min(1, share)).toFixed(1)} height="4" /></svg></dd>}
      {note && <dd class="resource-note">{note}</dd>}
    </div>
  );
}

function Resources() {
  const n = now.value;
  if (!n) return null;
  const p = n.process, codes = CODES.map((c) => ofSources(n, `http_responses_${c}_total`, "rate"));
  const open = ofSources(n, "http_connections", "value"), accepted = ofSources(n, "http_accepted_total", "rate");
  const cores = p ? p.cpu / p.cores : null;
  if (!p && open === null) return null; // an older server, without a source of HTTP
  return (
    <section class="resources-card" aria-label="Status codes, connections and the process">
      <dl class="resources">
        {codes.some((r) => r !== null) && <StatusCodes codes={codes} />}
        {open !== null && <Resource name="Connections" value={count(open)} note={accepted === null ? "" : `${rate(accepted)}/s accepted`} />}
        {cores !== null && <Resource name="CPU" value={percent(cores)} share={cores} note={`${p.cpu.toFixed(p.cpu < 9.95 ? 1 : 0)} of ${plural(p.cores, "core")}`} />}
        {p?.resident_bytes && <Resource name="Memory" value={bytes(p.resident_bytes)} note={p.threads ? plural(p.threads, "thread") : ""} />}
        {p?.open_files && <Resource name="Descriptors" value={count(p.open_files)} share={p.open_files_limit ? p.open_files / p.open_files_limit : null}
          note={p.open_files_limit ? `of ${count(p.open_files_limit)}` : "no limit"} />}
      </dl>
    </section>
  );
}

function StatusCodes({ codes }) {
  const all = codes.reduce((a, b) => a + b, 0);
  let at = 0;
  return (
    <div class="resource codes">
      <dt>Answers by status</dt>
      <dd class="code-list">{CODES.map((c, i) => <span key={c} class={codes[i] > 0 ? "" : "quiet"}><i class={`key code-${c}`} />{c} <b>{rate(codes[i])}/s</b></span>)}</dd>
      <dd class="meter" aria-hidden="true"><svg viewBox="0 0 100 4" preserveAspectRatio="none"><rect class="share-all" width="100" height="4" />
        {all > 0 && CODES.map((c, i) => {
          const x = at;
          at += 100 * codes[i] / all;
          return <rect key={c} class={`code-${c}`} x={x.toFixed(2)} width={(100 * codes[i] / all).toFixed(2)} height="4" />;
        })}</svg></dd>
    </div>
  );
}

// ---- the classes ----

// What the clients of each class get; only if there are several classes.
function Classes() {
  const sources = now.value?.stages.filter((s) => s.response) || [];
  return sources[0]?.classes.length > 1 ? <ClassTable sources={sources} /> : null;
}

// The charts are those of the first source; most servers have only one.
function ClassTable({ sources }) {
  const names = sources[0].classes.map((c) => c.name);
  const { frame: known, range } = useFrame(sources[0].name, { range: "5m" });
  const past = known && cut(known, range.from, range.to);
  const series = (i, key) => past?.stages[sources[0].name]?.classes?.[i]?.[key] || [];
  const column = (i, key) => (series(i, key).length ? series(i, key) : past.at.map(() => null));
  const sum = (i, of) => sources.reduce((all, s) => all + of(s.classes[i]), 0);
  const spark = (i, key, head) => <td class="num class-spark" data-label={head}><Spark at={series(i, key).length ? past.at : []} data={series(i, key)} /></td>;
  return (
    <Card title="Classes" id="classes-title" hint="What clients get, by class; the highest class first. Rates over 5 s, percentiles over 10 s.">
      <div class="table-scroll" role="group" aria-labelledby="classes-title" tabIndex={0}>
        <table class="cards">
          <caption class="hidden">Every class with the answers that its clients get</caption>
          <thead><tr><th scope="col">class</th>{["offered/s", "offered, 5 min", "good/s", "refused/s", "failed/s", "response p50 · p99", "p99, 5 min"].map((h) => <th key={h} scope="col" class="num">{h}</th>)}</tr></thead>
          <tbody>
            {names.map((name, i) => {
              const [ok, shed, failed] = ["ok", "shed", "failed"].map((key) => sum(i, (c) => c.answers[key]));
              const time = sources.map((s) => s.classes[i].answers.time).sort((a, b) => (b.p99 ?? 0) - (a.p99 ?? 0))[0];
              const cell = (head, text, alarm, more = "") => <td key={head} data-label={head} class={`num ${text === "0" ? "quiet" : ""} ${alarm ? "alarm" : ""} ${more}`}>{text}</td>;
              return (
                <tr key={name}>
                  <th scope="row">{name}</th>
                  {cell("offered/s", rate(sum(i, (c) => c.offered)))}
                  {spark(i, "in", "offered, 5 min")}
                  {cell("good/s", rate(ok))}
                  {cell("refused/s", rate(shed), shed > 0)}
                  {cell("failed/s", rate(failed), failed > 0)}
                  {cell("response p50 · p99", p50p99(time), false, "wide")}
                  {spark(i, "response_p99", "p99, 5 min")}
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {past && past.at.length > 1 && (
        <section class="charts" aria-label="Answers, by class">
          <Chart at={past.at} range={range} title="Good answers, by class" unit="rate" height={120} series={names.map((name, i) => ({ name, data: column(i, "good") }))} />
          <Chart at={past.at} range={range} title="Refused answers, by class" unit="rate" height={120} series={names.map((name, i) => ({ name, data: column(i, "refused") }))} />
        </section>
      )}
      <ClassKnobs names={names} />
    </Card>
  );
}

const split = (text) => {
  const i = text.lastIndexOf(" ");
  return i < 0 ? [text, ""] : [text.slice(0, i), text.slice(i + 1)];
};

function shedWord(n) {
  const by = {};
  for (const s of n.stages) for (const [reason, r] of Object.entries(s.shedBy)) if (r > 0) by[reason] = (by[reason] || 0) + r;
  if (n.all.away > 0) by["turned away"] = n.all.away;
  const top = Object.entries(by).sort((a, b) => b[1] - a[1]);
  if (top.length === 1) return word(top[0][0]); // its rate is the number above
  return top.length ? top.slice(0, 2).map(([reason, r]) => `${rate(r)} ${word(reason)}`).join(", ") : "nothing refused";
}

function Big({ name, value, unit, note, at, data, show, alarm }) {
  const known = data.filter((v) => v !== null);
  return (
    <div class={alarm ? "big alarm" : "big"}>
      <h2>{name}</h2>
      <p class="big-value">{value}<small>{unit}</small></p>
      <p class="big-note">{note}</p>
      <Spark at={at} data={data} />
      <p class="big-most">{known.length > 1 ? `max ${show(Math.max(...known))}` : ""}</p>
    </div>
  );
}

function Spark({ at, data }) {
  if (at.length < 2) return <svg class="spark" aria-hidden="true" viewBox="0 0 100 30" preserveAspectRatio="none"><path class="spark-base" d="M0 29H100" /></svg>;
  const start = Math.max(0, data.findIndex((v) => v !== null));
  const from = at[0], length = Math.max(1, at.at(-1) - from);
  const max = Math.max(...data.map((v) => v ?? 0), 1e-9);
  const xOf = (i) => (100 * (at[i] - from) / length).toFixed(2);
  const end = data.findLastIndex((v) => v !== null);
  let line = "", pen = false;
  data.forEach((v, i) => {
    if (v === null) return void (pen = false);
    line += `${pen ? "L" : "M"}${xOf(i)} ${(29 - 26 * v / max).toFixed(1)}`;
    pen = true;
  });
  return (
    <svg class="spark" viewBox="0 0 100 30" preserveAspectRatio="none" aria-hidden="true">
      <path class="spark-base" d="M0 29H100" />
      {line && !line.slice(1).includes("M") && <path class="spark-area" d={`${line}L${xOf(end)} 30L${xOf(start)} 30Z`} />}
      {line && <path class="spark-line" d={line} />}
    </svg>
  );
}

// ---- every stage ----

const p50p99 = (q) => (q.n > 0 ? `${seconds(q.p50)} · ${seconds(q.p99)}` : NONE);
const pooled = (f) => (s) => (s.hasQueue ? f(s) : NONE);

export const shedText = (shedBy) => {
  const some = Object.entries(shedBy).filter(([, r]) => r > 0).sort((a, b) => b[1] - a[1]);
  return some.length ? some.map(([reason, r]) => `${rate(r)} ${word(reason)}`).join(", ") : "0";
};

// Three kinds of refusals: events that the stage shed, clients that a source turned away before
// they became events, and events that other stages refused upstream on behalf of this stage.
export const lostText = (x) => {
  const inside = shedText(x.shedBy);
  const parts = [inside !== "0" && inside, x.away > 0 && `${rate(x.away)} turned away`, x.ahead > 0 && `${rate(x.ahead)} refused ahead`];
  return parts.filter(Boolean).join(", ") || inside;
};

const COLUMNS = [
  { head: "in/s", show: (s) => rate(s.in) },
  { head: "out/s", show: (s) => (s.links.length ? rate(s.out) : rate(s.done)) },
  { head: "queue", warn: (s) => s.fill > 0.8, show: pooled((s) => queueText(s)) },
  { head: "oldest", warn: (s) => s.queue.oldest_wait_seconds > 1, show: pooled((s) => (s.queue.length ? seconds(s.queue.oldest_wait_seconds) : NONE)) },
  { head: "wait p50 · p99", show: pooled((s) => p50p99(s.wait)) },
  { head: "service p50 · p99", show: (s) => p50p99(s.service) },
  { head: "threads busy", show: pooled((s) => `${count(s.threads.busy)} of ${count(s.threads.now)}`) },
  { head: "bounds", show: pooled((s) => `${s.threads.min}–${s.threads.max}`) },
  { head: "shed/s", show: lostText, warn: (s) => s.shed > 0 || s.ahead > 0, long: true },
  { head: "failed/s", show: (s) => rate(s.failed), warn: (s) => s.failed > 0 },
];

function where(s) {
  const place = { source: "source", inline: "inline", group: `group ${s.group}` }[s.placement] || "own pool";
  return [s.use, place, s.mode === "shared" ? "" : s.mode, isSteered(s) ? s.state : "", degraded(s)].filter(Boolean).join(" · ");
}

function StagesTable() {
  const n = now.value;
  if (!n) return <p class="absent">Waiting for the second answer: rates are computed from differences.</p>;
  return (
    <div class="table-scroll" role="group" aria-labelledby="stages-title" tabIndex={0}>
      <table class="cards">
        <caption class="hidden">Every stage with its numbers</caption>
        <thead><tr><th scope="col">stage</th>{COLUMNS.map((c) => <th key={c.head} scope="col" class="num">{c.head}</th>)}</tr></thead>
        <tbody>
          {n.stages.map((s) => (
            <tr key={s.name}>
              <th scope="row"><StageLink name={s.name} /><span class="use">{where(s)}</span>{s.width && <span class="use width">{widthText(s)}</span>}{s.trouble && <span class="use trouble">{s.trouble}</span>}</th>
              {COLUMNS.map((c) => <Cell key={c.head} c={c} s={s} />)}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Cell({ c, s }) {
  const text = c.show(s);
  const name = ["num", text === NONE && "none", text === "0" && "quiet", c.long && text !== "0" && "long", c.warn?.(s) && "alarm"];
  return <td class={name.filter(Boolean).join(" ")} data-label={c.head}>{text}</td>;
}

function Feed() {
  const list = decisions.value;
  return (
    <ol class="feed">
      {list?.slice(0, FEED).map((d) => <Decision key={d.id} d={d} />)}
      {list?.length === 0 && <Empty>No decisions yet.</Empty>}
      {!list && <Empty>Waiting for the first answer.</Empty>}
    </ol>
  );
}
