// SPDX-License-Identifier: MIT
// The slowest requests as waterfalls: the wait and service time of each at every stage that it
// passed through, the time for which it waited for children there, and the stages of the children.

import { seconds, word } from "../format.js";
import { graph } from "../live.js";
import { Absent, Card, Search, Select, StageLink, Time } from "../parts.jsx";
import { route, setParams } from "../route.js";
import { useAnswer } from "../use.js";

const ALL = 500; // the most that the server lists; a search goes through all of them

// Every word must occur in one of: path, class, outcome, trace id, stages.
function isFound(r, words) {
  const text = [r.path, r.class, r.outcome, r.trace, r.end, r.id, ...(r.spans || []).concat(r.child_spans || []).map((s) => s.stage)].join("\n").toLowerCase();
  return words.every((w) => text.includes(w));
}

export function Requests() {
  const { params } = route.value;
  const n = ["10", "20", "50"].includes(params.n) ? params.n : "20";
  const words = (params.q || "").toLowerCase().split(/\s+/).filter(Boolean);
  const searched = words.length > 0 || Boolean(params.stage) || Boolean(params.outcome);
  const { data, absent, error } = useAnswer(
    `/api/v1/requests/slowest?n=${searched ? ALL : n}${params.class ? `&class=${encodeURIComponent(params.class)}` : ""}`, 3, "/api/v1/requests/slowest");
  const all = data?.requests || [];
  const passed = (r) => (r.spans || []).concat(r.child_spans || []).some((s) => s.stage === params.stage) || r.end === params.stage;
  const found = all.filter((r) => isFound(r, words) && (!params.stage || passed(r)) && (!params.outcome || r.outcome === params.outcome));
  const list = found.slice(0, Number(n));
  const outcomes = [...new Set([...all.map((r) => r.outcome), params.outcome].filter(Boolean))].sort();
  const longest = Math.max(...list.map((r) => r.took), 1e-9);
  return (
    <>
      <div class="page-head">
        <h1>Slowest requests</h1>
        <div class="filters" role="search" aria-label="Filters">
          <Search id="req-q" label="Search" hint="path, stage, class, status, trace id" value={params.q || ""} onInput={(v) => setParams({ q: v })} />
          <Select id="req-stage" label="Stage" value={params.stage || ""} onChange={(v) => setParams({ stage: v })}
            options={[["", "all"], ...(graph.value?.stages || []).map((s) => s.name)]} />
          <Select id="req-outcome" label="Status" value={params.outcome || ""} onChange={(v) => setParams({ outcome: v })}
            options={[["", "all"], ...outcomes.map((o) => [o, word(o)])]} />
          <Select id="req-class" label="Class" value={params.class || ""} onChange={(v) => setParams({ class: v })}
            options={[["", "all"], ...(graph.value?.classes || [])]} />
          <Select id="req-n" label="How many" value={n} onChange={(v) => setParams({ n: v })} options={["10", "20", "50"]} />
        </div>
      </div>
      <Card title="Where their time went" id="req-title" tools={<ul class="legend keys"><li><i class="key key-wait" />waiting in a queue</li><li><i class="key key-service" />service</li>{list.some((r) => r.children > 0) && <li><i class="key key-children" />children</li>}<li><i class="key key-nowhere" />at no stage</li></ul>}>
        {absent && <Absent>This server does not keep its slowest requests: it has no /api/v1/requests/slowest.</Absent>}
        {error && !data && <Absent>{error}</Absent>}
        {data && !list.length && <Absent>{searched && all.length ? `None of the ${all.length} slowest requests matches.` : "No request has been traced yet."}</Absent>}
        {searched && list.length > 0 && <p class="hint" role="status">{found.length} of the {all.length} slowest match{found.length > list.length ? `, ${list.length} are shown` : ""}.</p>}
        {list.length > 0 && <ol class="requests">{list.map((r) => <Request key={r.id} r={r} longest={longest} />)}</ol>}
      </Card>
    </>
  );
}

function Request({ r, longest }) {
  const parts = [];
  let at = 0, rest = 0; // `rest`: time at no stage, which is before the first, between two, and after the last
  for (const s of r.spans || []) {
    const from = s.after ?? at;
    parts.push({ ...s, from });
    rest += Math.max(0, from - at);
    at = Math.max(at, from + (s.wait || 0) + (s.service || 0) + (s.awaiting || 0));
  }
  const awaits = r.children > 0;
  rest += Math.max(0, r.took - at);
  const x = (t) => 100 * t / longest;
  return (
    <li>
      <details>
        <summary>
          <b class="took">{seconds(r.took)}</b>
          <span class="req-what"><span class="req-path">{r.path || r.id}</span><span class="use">{r.class} · {r.outcome} · <Time at={r.at} /></span></span>
          <svg class="waterfall" viewBox="0 0 100 12" preserveAspectRatio="none" role="img" aria-label={parts.map((s) => `${s.stage}: wait ${seconds(s.wait)}, service ${seconds(s.service)}${s.awaiting > 0 ? `, children ${seconds(s.awaiting)}` : ""}`).concat(`at no stage: ${seconds(rest)}`).join("; ")}>
            <rect class="bar-all" x="0" y="5" width={x(r.took)} height="2" />
            {parts.map((s, i) => [
              <rect key={`w${i}`} class="bar-wait" x={x(s.from)} y="3.5" width={x(s.wait || 0)} height="5" />,
              s.awaiting > 0 && <rect key={`c${i}`} class="bar-children" x={x(s.from + (s.wait || 0) + (s.service || 0))} y="4" width={x(s.awaiting)} height="4" />,
              <rect key={`s${i}`} class="bar-service" x={x(s.from + (s.wait || 0))} y="0" width={Math.max(0.2, x(s.service || 0))} height="12" />,
            ])}
          </svg>
        </summary>
        {r.trace && <p class="use">trace <code>{r.trace}</code></p>}
        <div class="table-scroll" role="group" aria-label="Stages of the request" tabIndex={0}><table class="spans"><thead><tr><th scope="col">stage</th>{["after", "wait", "service", awaits && "children"].filter(Boolean).map((h) => <th key={h} scope="col" class="num">{h}</th>)}</tr></thead>
          <tbody>{parts.concat(r.child_spans || []).map((s, i) => <tr key={i}><th scope="row">{s.child && `child ${s.child}, `}<StageLink name={s.stage} /></th>
            {[s.from ?? s.after, s.wait, s.service].map((t, k) => <td key={k} class="num">{seconds(t)}</td>)}{awaits && <td class="num">{seconds(s.awaiting)}</td>}</tr>)}
            <tr><th scope="row" title="Before the first stage, between two stages, or after the last one until the response was returned">at no stage</th><td /><td /><td class="num">{seconds(rest)}</td></tr></tbody></table></div>
      </details>
    </li>
  );
}
