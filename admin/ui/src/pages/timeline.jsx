// SPDX-License-Identifier: MIT
// All decisions, changes and alerts, newest first, with lanes over time and filters in the address.

import { useState } from "preact/hooks";
import { act, isAbsent } from "../api.js";
import { clock, shorten, word } from "../format.js";
import { acts, alerts, decisions, graph, has, mayAct, older, ownerOf, readActs, readOlder, serverNow } from "../live.js";
import { Absent, actText, Card, Decision, Earlier, Empty, RangePicker, Select, StageLink, Time, whatOf } from "../parts.jsx";
import { RANGES, rangeOf, route, setParams } from "../route.js";

// The server also lists changes by operators among the decisions. Such decisions are left out here,
// since the list of changes shows them with the operator's name.
const actors = new Set(["operator", "expiry", "drain"]);
function isTold(d, oldest) {
  return d.time >= oldest && (actors.has(d.actor) || d.action === "reload");
}

// One list of decisions, changes and alerts: { kind, at, stage, actor, action, text, d | a }
function entries() {
  const oldest = acts.value?.length ? Math.min(...acts.value.map((a) => a.at)) - 0.01 : Infinity; // a decision may be recorded slightly earlier than its change
  const made = (decisions.value || []).filter((d) => !isTold(d, oldest)).map((d) => ({ kind: "decision", id: `d${d.id}`, at: d.time, stage: d.stage, actor: d.actor,
    action: d.action, text: `${whatOf(d)} ${d.rule} ${d.limit} ${d.inputs}`, d }));
  const done = (acts.value || []).map((a) => ({ kind: "act", id: `a${a.id}`, at: a.at, stage: ownerOf(a.target), actor: a.actor,
    action: a.what, text: actText(a), a }));
  const told = [...(alerts.value?.active || []), ...(alerts.value?.past || [])].map((a) => ({ kind: "alert", id: `w${a.id}`, at: a.since,
    stage: a.stage || "", actor: "alert", action: a.name, text: a.text, alert: a }));
  return made.concat(done, told).sort((a, b) => b.at - a.at);
}

const isEarlier = (e) => Boolean((e.d || e.a)?.before_restart);

// The shortest range that contains all entries.
function covering(all) {
  const age = serverNow() - (all.at(-1)?.at ?? serverNow());
  return Object.keys(RANGES).find((k) => RANGES[k] >= age) || "6h";
}

export function Timeline() {
  const { params } = route.value;
  const all = entries();
  const range = rangeOf({ ...params, range: params.range || covering(all) }, serverNow());
  const names = graph.value?.stages.map((s) => s.name) || [];
  const words = (params.q || "").toLowerCase();
  const list = all.filter((e) => e.at >= range.from && (range.live || e.at <= range.to) && (!params.stage || e.stage === params.stage) &&
    (!params.actor || e.actor === params.actor) && (!params.action || e.action === params.action) && (!words || `${e.stage} ${e.text}`.toLowerCase().includes(words)));
  const choices = (key) => [["", "all"], ...[...new Set(all.map((e) => e[key]).filter(Boolean))].sort().map((x) => [x, word(x)])];
  // The change that an undo on the server would revert: the newest one in effect that is not itself
  // an undo or an expiry.
  const next = (acts.value || []).find((a) => !a.undone && !a.before_restart && a.actor !== "expiry" && a.actor !== "drain" && a.what !== "reload" && a.what !== "undo");
  return (
    <>
      <div class="page-head"><h1>Timeline</h1><RangePicker range={range} /></div>
      <div class="filters" role="search" aria-label="Filters">
        <Select id="tl-stage" label="Stage" value={params.stage || ""} options={[["", "all"], ...names]} onChange={(v) => setParams({ stage: v })} />
        <Select id="tl-actor" label="By" value={params.actor || ""} options={choices("actor")} onChange={(v) => setParams({ actor: v })} />
        <Select id="tl-action" label="What" value={params.action || ""} options={choices("action")} onChange={(v) => setParams({ action: v })} />
        <label class="select" for="tl-q"><span>Text</span><input id="tl-q" type="search" value={params.q || ""} onInput={(e) => setParams({ q: e.currentTarget.value })} /></label>
      </div>
      <Card title="Over time" id="lanes-title" tools={<ul class="legend keys"><li><i class="key key-decision" />decision</li><li><i class="key key-act" />change by an operator</li></ul>}>
        <Lanes list={list} names={params.stage ? [params.stage] : names} range={range} />
      </Card>
      <Card title={`${list.length} of ${all.length}`} id="tl-title" hint="Newest first.">
        <ol class="feed long">
          {list.map((e, i) => [
            isEarlier(e) && !list.slice(0, i).some(isEarlier) && <li key="restart" class="restart">The server was restarted. What follows was before that, and is kept for reading only.</li>,
            <Entry key={e.id} e={e} next={next} />])}
          {!list.length && <Empty>{all.length ? "Nothing matches these filters." : "No decisions yet."}</Empty>}
        </ol>
        <Older />
        {!has("GET", "/api/v1/changes") && decisions.value && <Absent>This server keeps no list of operators' changes; they appear among the decisions.</Absent>}
      </Card>
    </>
  );
}

function Entry({ e, next }) {
  if (e.kind === "alert") return <Alert a={e.alert} />;
  return e.kind === "act" ? <Act a={e.a} newest={e.a === next} /> : <Decision d={e.d} />;
}

function Alert({ a }) {
  return (
    <li class="alert"><Time at={a.since} /><div>
      <p class="what">{a.stage ? <StageLink name={a.stage} /> : <b>the server</b>} {word(a.name)} <span class="actor">alert</span>
        <span class={`outcome ${a.until === null ? "harmed" : "helped"}`}>{a.until === null ? "active" : "ended at "}{a.until !== null && <Time at={a.until} />}</span></p>
      <p class="why">{a.text}</p>
    </div></li>
  );
}

// The server stores more entries than the page reads at first.
function Older() {
  const [said, setSaid] = useState("");
  if (!older.value.decisions && !older.value.changes) return null;
  const read = () => readOlder().then(() => setSaid(""), (e) => setSaid(e.message));
  return (
    <p class="older"><button type="button" class="plain" onClick={read}>Older</button>{said && <output class="said wrong">{said}</output>}</p>
  );
}

function Act({ a, newest }) {
  const [said, setSaid] = useState("");
  const undo = async () => {
    try {
      await act("POST", "/api/v1/undo", {});
      readActs();
    } catch (e) {
      setSaid(isAbsent(e) ? "This server does not support undo." : e.message);
    }
  };
  const target = ownerOf(a.target);
  const stage = a.what === "reload" && !graph.value?.stages.some((s) => s.name === target) ? "" : target; // a new graph belongs to no stage
  return (
    <li class="act"><Time at={a.at} /><div>
      <p class="what">{stage ? <StageLink name={stage} /> : <b>the server</b>} {actText({ ...a, target: inStage(a.target, stage) })} <span class="actor">{a.actor}</span>
        {a.undone && <span class="outcome undone">↩ undone</span>}
        <Earlier of={a} />
        {newest && !a.undone && mayAct.value && has("POST", "/api/v1/undo") && <button type="button" class="plain small" onClick={undo}>Undo</button>}</p>
      {said && <output class="said wrong">{said}</output>}
    </div></li>
  );
}

// The target of a change without its stage: "threads.max" for "work.threads.max", "" for "work".
function inStage(target, stage) {
  if (!stage || target === stage) return stage ? "" : target;
  return String(target).startsWith(`${stage}.`) ? target.slice(stage.length + 1) : target;
}

// One line per stage; the list below has the same entries as text.
function Lanes({ list, names, range }) {
  const lanes = [...names, ...(list.some((e) => !names.includes(e.stage)) ? [""] : [])];
  const span = Math.max(1, range.to - range.from);
  return (
    <div class="lanes" aria-hidden="true">
      {lanes.map((name) => (
        <div class="lane" key={name}>
          <span class="lane-name" title={name}>{shorten(name, 14) || "the server"}</span>
          <svg viewBox="0 0 1000 20" preserveAspectRatio="none" class="lane-line"><path d="M0 10H1000" /></svg>
          <svg class="lane-marks" width="100%" height="20">
            {list.filter((e) => (names.includes(e.stage) ? e.stage : "") === name).map((e) => (
              <svg key={e.id} x={`${(100 * (e.at - range.from) / span).toFixed(2)}%`} overflow="visible">
                {e.kind === "act" ? <path class="lane-act" d="M0 3l6 7-6 7-6-7z" /> : <circle class="lane-decision" cy="10" r="4.5" />}
                <title>{`${clock(e.at)} ${e.actor}: ${e.text}${isEarlier(e) ? " (before the restart)" : ""}`}</title>
              </svg>
            ))}
          </svg>
        </div>
      ))}
      <div class="lane axis"><span class="lane-name" /><span class="axis-ends"><span>{clock(range.from)}</span><span>{range.live ? "now" : clock(range.to)}</span></span></div>
    </div>
  );
}
