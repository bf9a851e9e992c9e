// SPDX-License-Identifier: MIT
// The file as it was read, the value that each line sets, and the values in effect, stage by stage.

import { useRef, useState } from "preact/hooks";
import { NONE } from "../format.js";
import { effectiveOf } from "../knobs.jsx";
import { graph } from "../live.js";
import { Overload } from "../overload.jsx";
import { Absent, Card, StageLink } from "../parts.jsx";
import { stagePath } from "../api.js";
import { Draining, FailedReload, ReloadButton, ReloadPanel, useReload } from "../reload.jsx";
import { SaveButton, SavePanel, useSave } from "../save.jsx";
import { useAnswer } from "../use.js";

export function Config() {
  const { data, absent, error } = useAnswer("/api/v1/config", 10, "/api/v1/config");
  const stages = graph.value?.stages || [];
  const files = data?.files || [];
  const [it, ask, close] = useReload(), button = useRef(null);
  const [saving, askSave, closeSave] = useSave(), saveButton = useRef(null);
  return (
    <>
      <div class="page-head"><h1>Configuration</h1><div class="head-side"><Draining /><SaveButton it={saving} ask={askSave} button={saveButton} /><ReloadButton it={it} ask={ask} button={button} /></div></div>
      {saving && <SavePanel it={saving} ask={askSave} close={() => { closeSave(); saveButton.current?.focus(); }} />}
      {it ? <ReloadPanel it={it} ask={ask} close={() => { close(); button.current?.focus(); }} /> : <FailedReload />}
      <Card title={files.length > 1 ? "Files" : "File"} id="config-title" hint="Changes by operators override the file; they are written into it only when they are saved.">
        {absent && <Absent>This server does not show its file: it has no /api/v1/config. The values in effect are below.</Absent>}
        {error && !data && <Absent>{error}</Absent>}
        {data && !files.length && <Absent>This server was not started from a file.</Absent>}
        {files.map((f) => <Yaml key={f.file} file={f.file} text={f.text || ""} lines={(data.lines || []).filter((l) => l.file === f.file)} />)}
      </Card>
      <Overload />
      <AlertRules />
      <Card title="Values in effect" id="effective-title" hint="By stage; operators change them on the pages of the stages.">
        {stages.map((s) => <StageKnobs key={s.name} stage={s} />)}
      </Card>
    </>
  );
}

// The conditions for alerts, for all stages and for individual ones.
function AlertRules() {
  const { data } = useAnswer("/api/v1/alerts", 10);
  if (!data?.rules) return null;
  const when = (r) => (r.enabled ? `${r.above ? `above ${r.above}/s, ` : ""}held for ${r.for} s, cleared after ${r.linger} s` : "off");
  return (
    <Card title="Alerts" id="alerts-title" hint="From 'alerts:' in the file.">
      <div class="table-scroll" role="group" aria-label="Alert rules" tabIndex={0}>
        <table><thead><tr><th scope="col">alert</th><th scope="col">stage</th><th scope="col">raised</th></tr></thead>
          <tbody>{data.rules.flatMap((r) => [{ ...r, stage: null }, ...r.stages.map((s) => ({ ...s, name: r.name }))]).map((r) => (
            <tr key={`${r.name} ${r.stage}`}><th scope="row"><code>{r.name}</code></th><td>{r.stage || "all"}</td><td>{when(r)}</td></tr>
          ))}</tbody></table>
      </div>
    </Card>
  );
}

// The values that each line sets, by line number. lines: [{ line, path, value }]; value is null
// where it may be a secret.
function saidBy(lines) {
  const out = new Map();
  for (const { line, path, value } of lines) {
    const text = value === null ? `${path} (from the environment)` : `${path} = ${value}`;
    out.set(line, out.has(line) ? `${out.get(line)}, ${text}` : text);
  }
  return out;
}

function Yaml({ file, text, lines }) {
  const said = saidBy(lines);
  return (
    <div class="yaml" role="group" aria-label={file}>
      <p class="lead"><code>{file}</code></p>
      <ol>{text.replace(/\n$/, "").split("\n").map((line, i) => (
        <li key={i}><code>{colour(line)}</code>{said.has(i + 1) && <span class="origin">{said.get(i + 1)}</span>}</li>
      ))}</ol>
    </div>
  );
}

// Emphasise keys and dim comments; a '#' within quotes does not start a comment.
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
