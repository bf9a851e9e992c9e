// SPDX-License-Identifier: MIT
// What each core and thread did at each stage, and what it sent where (Larus and Parkes 2002, figure 4).

import { useRef } from "preact/hooks";
import { count, NONE, percent, rate, seconds, span } from "../format.js";
import { Absent, Card, StageLink } from "../parts.jsx";
import { baseOf, kept, linksOf, stagesOf, WINDOWS } from "../profile.js";
import { route, withParams } from "../route.js";
import { useAnswer } from "../use.js";

const READ_EVERY_S = 2;
const LABELS = { "10s": "10 s", "1m": "1 min", all: "since the start" };

export function Profile() {
  const { params } = route.value;
  const length = Object.hasOwn(WINDOWS, params.window) ? params.window : "10s";
  const { data, absent, error } = useAnswer("/api/v1/profile", READ_EVERY_S, "/api/v1/profile");
  const answers = useRef([]);
  if (data) answers.current = kept(answers.current, data);
  return (
    <>
      <div class="page-head">
        <h1>Profile</h1>
        <nav class="segments" aria-label="Window">
          {Object.keys(WINDOWS).map((k) => <a key={k} href={withParams({ window: k })} aria-current={k === length ? "true" : undefined}>{LABELS[k]}</a>)}
        </nav>
      </div>
      {absent && <Absent>This server has no profile: it has no /api/v1/profile.</Absent>}
      {error && !data && <Absent>{error}</Absent>}
      {data && <Tables then={baseOf(answers.current, WINDOWS[length])} now={data} />}
    </>
  );
}

function Tables({ then, now }) {
  const length = Math.max(1e-3, now.counted_seconds - (then?.counted_seconds || 0));
  const of = then ? `In the last ${span(Math.round(length))}` : `Since these stages were started, ${span(length)} ago`;
  const stages = stagesOf(then, now, length), links = linksOf(then, now);
  const makes = stages.some((s) => s.sum.spawned > 0); // else there is no column of events made
  return (
    <>
      <Card title="Stages by thread" id="profile-stages" hint={`${of}. Queue is the mean length; the longest wait is at most the one shown.`}>
        <div class="table-scroll" role="group" aria-labelledby="profile-stages" tabIndex={0}>
          <table class="profile">
            <thead><tr><th scope="col">stage</th><th scope="col">on</th><th scope="col"><span class="hidden">share of the stage</span></th>
              {["queue", "started", "restarted", "completed", "shed", "failed", "wait", "longest", "busy", makes && "made"].filter(Boolean).map((h) => <th key={h} scope="col" class="num">{h}</th>)}</tr></thead>
            {stages.map((s) => <StageRows key={s.name} s={s} makes={makes} />)}
          </table>
        </div>
      </Card>
      <Card title="Arcs" id="profile-arcs" hint={`${of}. What each thread sent to the next stage.`}>
        {!links.length && <Absent>Nothing was sent.</Absent>}
        {links.length > 0 && (
          <div class="table-scroll" role="group" aria-labelledby="profile-arcs" tabIndex={0}>
            <table class="profile">
              <thead><tr><th scope="col">from</th><th scope="col">outlet</th><th scope="col">to</th><th scope="col">on</th><th scope="col"><span class="hidden">share of the link</span></th>
                <th scope="col" class="num">sent</th><th scope="col" class="num">per second</th><th scope="col" class="num">refused</th></tr></thead>
              {links.map((l) => <LinkRows key={l.id} l={l} length={length} />)}
            </table>
          </div>
        )}
      </Card>
    </>
  );
}

// A bar for the part of `all` that a row has.
const Share = ({ part, all }) => (
  <td class="share">
    {all > 0 && <svg viewBox="0 0 100 8" width="84" height="8" preserveAspectRatio="none" role="img" aria-label={percent(part / all)}><rect class="share-all" width="100" height="8" rx="2" /><rect class="share-part" width={100 * part / all} height="8" rx="2" /></svg>}
  </td>
);

const begun = (r) => r.started + r.restarted;
const length3 = (n) => (n >= 1000 ? count(n) : n >= 10 ? n.toFixed(1) : n.toFixed(3));

function StageRows({ s, makes }) {
  const rows = s.rows.length > 1 ? [...s.rows, s.sum] : s.rows;
  return (
    <tbody>
      {!rows.length && <tr><th scope="row"><StageLink name={s.name} /></th><td class="none" colSpan={11 + makes}>nothing</td></tr>}
      {rows.map((r, i) => (
        <tr key={r.on} class={r.kind === "all" ? "sum" : ""}>
          {i === 0 && <th scope="rowgroup" rowSpan={rows.length}><StageLink name={s.name} /><span class="use">{s.placement === "group" ? `group ${s.group}` : s.placement}</span></th>}
          <td>{r.on}</td>
          <Share part={begun(r)} all={r.kind === "all" ? 0 : begun(s.sum)} />
          <td class="num">{r.waits ? length3(r.queue) : NONE}</td>
          <td class="num">{count(r.started)}</td>
          <td class={r.restarted ? "num" : "num none"}>{count(r.restarted)}</td>
          <td class="num">{count(r.completed)}</td>
          <td class={r.shed ? "num" : "num none"}>{count(r.shed)}</td>
          <td class={r.failed ? "num" : "num none"}>{count(r.failed)}</td>
          <td class="num">{r.waits ? seconds(r.waited / r.waits) : NONE}</td>
          <td class="num">{r.longest === null ? NONE : seconds(r.longest)}</td>
          <td class="num">{r.busy > 0 || r.kind === "core" || r.kind === "thread" ? percent(r.busy) : NONE}</td>
          {makes && <td class="num">{count(r.spawned)}</td>}
        </tr>
      ))}
    </tbody>
  );
}

function LinkRows({ l, length }) {
  const rows = l.arcs.length > 1 ? [...l.arcs, { on: "all", sum: true, sent: l.sent, refused: l.refused }] : l.arcs;
  return (
    <tbody>
      {rows.map((a, i) => (
        <tr key={a.on} class={a.sum ? "sum" : ""}>
          {i === 0 && <th scope="rowgroup" rowSpan={rows.length}><StageLink name={l.from} /></th>}
          {i === 0 && <td rowSpan={rows.length}>{l.outlet}</td>}
          {i === 0 && <td rowSpan={rows.length}><StageLink name={l.to} /></td>}
          <td>{a.on}</td>
          <Share part={a.sent} all={a.sum ? 0 : l.sent} />
          <td class="num">{count(a.sent)}</td>
          <td class="num">{rate(a.sent / length)}</td>
          <td class={a.refused ? "num" : "num none"}>{count(a.refused)}</td>
        </tr>
      ))}
    </tbody>
  );
}
