// SPDX-License-Identifier: MIT
// The file as it was read, where each line's value comes from, and what counts now, stage by stage.

import { useState } from "preact/hooks";
import { NONE } from "../format.js";
import { effectiveOf } from "../knobs.jsx";
import { graph, mode } from "../live.js";
import { Absent, Card, StageLink } from "../parts.jsx";
import { stagePath } from "../api.js";
import { useAnswer } from "../use.js";

export function Config() {
  const { data, absent, error } = useAnswer("/api/v1/config", 10, "/api/v1/config");
  const stages = graph.value?.stages || [];
  return (
    <>
      <div class="page-head"><h1>Configuration</h1>{data?.file && <p class="lead"><code>{data.file}</code></p>}</div>
      <Card title="File" id="config-title" hint="Operators' changes lie over it and are not written into it until they are saved.">
        {absent && <Absent>This server does not show its file: it has no /api/v1/config. What counts now is below.</Absent>}
        {error && !data && <Absent>{error}</Absent>}
        {data && <Yaml text={data.text || ""} lines={data.lines} />}
      </Card>
      <Card title="What counts now" id="effective-title" hint={`Overload control of the whole server: ${mode.value}.`}>
        {stages.map((s) => <StageKnobs key={s.name} stage={s} />)}
      </Card>
    </>
  );
}

// lines: [{ line, origin | from | source, value? }], or an object by line number; anything else is left out.
function originsOf(lines) {
  const out = new Map();
  const list = Array.isArray(lines) ? lines : Object.entries(lines || {}).map(([line, x]) => (typeof x === "object" ? { line, ...x } : { line, origin: x }));
  for (const l of list) {
    const text = [l?.path || l?.key, l?.value !== undefined && l?.value !== null ? `= ${l.value}` : "", l?.origin || l?.from || l?.source].filter(Boolean).join(" ");
    if (l && l.line && text) out.set(Number(l.line), text);
  }
  return out;
}

function Yaml({ text, lines }) {
  const origins = originsOf(lines);
  return (
    <div class="yaml" role="group" aria-labelledby="config-title" tabIndex={0}>
      <ol>{text.replace(/\n$/, "").split("\n").map((line, i) => (
        <li key={i}><code>{colour(line)}</code>{origins.has(i + 1) && <span class="origin">{origins.get(i + 1)}</span>}</li>
      ))}</ol>
    </div>
  );
}

// Keys stand out, comments step back; a '#' within quotes is left alone.
function colour(line) {
  const m = /^((?:[^"'#]|"[^"]*"|'[^']*'|\S#)*?)(\s#.*|^#.*)?$/.exec(line);
  const body = m ? m[1] : line, comment = m?.[2] || "";
  const key = /^(\s*(?:- )?)([\w.*-]+:)(.*)$/.exec(body);
  return [key ? [key[1], <b>{key[2]}</b>, key[3]] : body, comment && <i>{comment}</i>];
}

function StageKnobs({ stage }) {
  const [open, setOpen] = useState(false);
  const { data, error } = useAnswer(open ? stagePath(stage.name, "knobs") : null, 10);
  return (
    <details class="stage-knobs" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary><b>{stage.name}</b> <span class="use">{stage.use}, {stage.placement}</span></summary>
      {error && <Absent>{error}</Absent>}
      {data && (
        <div class="table-scroll" role="group" aria-label={`Knobs of ${stage.name}`} tabIndex={0}>
          <table><thead><tr><th scope="col">knob</th><th scope="col">effective</th><th scope="col">from</th><th scope="col">default</th><th scope="col">what it does</th></tr></thead>
            <tbody>{data.knobs.map((k) => <tr key={k.name}><th scope="row"><code>{k.name}</code></th><td><code>{effectiveOf(k) || NONE}</code></td>
              <td>{originOf(k)}</td><td><code>{k.default || NONE}</code></td><td class="help">{k.help}</td></tr>)}</tbody></table>
        </div>
      )}
      {data && <p class="hint">To change one: <StageLink name={stage.name} />.</p>}
    </details>
  );
}

function originOf(k) {
  if (k.overridden !== undefined && k.overridden !== null) return "operator";
  if (k.origin) return k.origin;
  return String(effectiveOf(k)) === String(k.default ?? "") ? "default" : "file";
}
