// SPDX-License-Identifier: MIT
// The knobs of a stage, a core group or a class with three values each: configured (the file), overridden (an operator) and
// effective. They are grouped by what they act on; knobs of policies that are not in use are folded, and so are
// those that are fixed while the server runs.

import { useEffect, useState } from "preact/hooks";
import { act, classPath, groupPath, isAbsent, stagePath } from "./api.js";
import { has, isStale, mayAct, now, readActs, serverNow } from "./live.js";
import { Absent, Card } from "./parts.jsx";
import { NONE, span } from "./format.js";
import { href } from "./route.js";
import { useAnswer } from "./use.js";

// Knobs that have no effect with a placement: a source has no admission, an inline stage no queue.
const UNUSED = {
  source: /^(threads|queue|cohort|admission|degrade|width|urgent)\.|^(mode|key|group|local|serial)$/,
  inline: /^(threads|queue|cohort|urgent)\.|^(group|local|serial)$/,
  pool: /^urgent\.|^(local|serial)$/,
};

// What knobs act on, in order of use. The last has all the others.
const SUBJECTS = [
  ["Threads", "How many threads handle events", /^threads\./],
  ["Queue", "Which events may wait, and which is first", /^queue\./],
  ["Admission", "Which events are refused", /^admission\./],
  ["Batches", "How many events a call of the handler gets", /^cohort\./],
  ["Quality", "When the stage does less work per event", /^degrade\./],
  ["Width", "How many events are under way at once", /^width\./],
  ["The stage itself", "Options of its type, 'with:' in the file", /^with\./],
  ["Visits of a core", "When a core turns to another stage", /^(gate|urgent)\.|^(starve|schedule|order|visit|balance)$/],
  ["Place and objective", "", /./],
];

// The choices that a knob's help begins with, such as "policies codel and dagor: ..." or "policy rate: ...".
const CHOICE = /^(policy|policies|discipline|mode) (\w+(?:(?:, | and )\w+)*):/;

// Whether the knob belongs to a policy, discipline, mode or distribution other than the one in use. `value(name)`
// returns the effective value of another knob.
export function isOfOther(k, value) {
  const head = CHOICE.exec(k.help), dist = k.name.startsWith("with.") && / with dist (\w+)/.exec(k.help);
  if (dist) return value("with.dist") !== undefined && value("with.dist") !== dist[1];
  if (!head) return false;
  const names = [...head[2].split(/, | and /), ...[...k.help.matchAll(/; (\w+): /g)].map((m) => m[1])];
  const used = value({ discipline: "queue.discipline", mode: "mode" }[head[1]] || `${k.name.split(".")[0]}.policy`);
  return used !== undefined && used !== "auto" && !names.includes(used); // "auto": not known yet
}
const FOR = [["", "until changed"], ["1m", "for 1 min"], ["10m", "for 10 min"], ["1h", "for 1 h"]];
const ROUTES = { stage: "/api/v1/stages/{stage}/knobs/{knob}", group: "/api/v1/groups/{group}/knobs/{knob}", class: "/api/v1/classes/{class}/knobs/{knob}" };

export const effectiveOf = (k) => k.effective ?? k.value ?? "";

export function Knobs({ stage, placement }) {
  const s = now.value?.byName.get(stage);
  // "auto" is a policy, too: the server tells which one it has chosen
  const actual = { "admission.policy": s?.admission.policy };
  const fits = (k) => s?.width || !k.name.startsWith("width.");
  return <KnobCard base={stagePath(stage, "knobs")} kind="stage" placement={placement} title="Knobs" id="knobs-title" actual={actual} fits={fits} />;
}

// In a core group's card, closed at first; nothing if the server has no knobs of groups.
export function GroupKnobs({ group }) {
  const [open, setOpen] = useState(false);
  if (!has("PUT", ROUTES.group)) return null;
  const id = `knobs-${group}`;
  return (
    <details class="fixed group-knobs" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Knobs of the group {group}</summary>
      {open && <KnobCard base={groupPath(group, "knobs")} kind="group" title={`Knobs of ${group}`} id={id} prefix={`${id}-`} />}
    </details>
  );
}

// Below the table of classes, closed at first; nothing if the server has no knobs of classes.
export function ClassKnobs({ names }) {
  const [open, setOpen] = useState(false);
  if (!has("PUT", ROUTES.class)) return null;
  return (
    <details class="fixed class-knobs" onToggle={(e) => setOpen(e.currentTarget.open)}>
      <summary>Objectives of the classes</summary>
      {open && names.map((name) => <KnobCard key={name} base={classPath(name, "knobs")} kind="class" title={`Knobs of class ${name}`} id={`class-${name}`} prefix={`class-${name}-`} />)}
    </details>
  );
}

// `prefix`: of the ids of the knobs' fields; `${id}-` if there may be several cards on a page.
function KnobCard({ base, kind, placement, title, id, prefix = "", actual = {}, fits = () => true }) {
  const { data, error, again } = useAnswer(base, 5);
  const [undone, setUndone] = useState(null);
  const [undos, setUndos] = useState(0);
  const list = (data?.knobs || []).filter((k) => !UNUSED[placement]?.test(k.name) && fits(k));
  const value = (name) => actual[name] ?? effectiveOf(list.find((k) => k.name === name) || {});
  const undo = async () => {
    try {
      await act("POST", "/api/v1/undo", {});
      setUndone({ good: true, text: "The last change was undone." });
      setUndos((n) => n + 1);
      again();
      readActs();
    } catch (e) {
      setUndone({ text: isAbsent(e) ? "This server does not support undo." : e.message });
    }
  };
  return (
    <Card title={title} id={id} hint={mayAct.value ? "Changes take effect immediately and are recorded." : "Read-only: a viewer cannot make changes."}
      tools={mayAct.value && has("POST", "/api/v1/undo") && <div class="acts">{has("POST", "/api/v1/save") && <a class="more" href={href("config")}>Save to file</a>}<button type="button" class="plain" onClick={undo}>Undo the last change</button></div>}>
      {undone && <output class={undone.good ? "said good" : "said wrong"}>{undone.text}</output>}
      {error && !data && <Absent>{error}</Absent>}
      {subjectsOf(list).map(([subject, hint, knobs]) => <Subject key={subject} name={subject} hint={hint} knobs={knobs} value={value} base={base} kind={kind} prefix={prefix} again={again} undos={undos} />)}
      {data && !list.length && <p class="absent">This {kind} has no knobs.</p>}
    </Card>
  );
}

// [[title, hint, knobs]] for the subjects that have any.
function subjectsOf(list) {
  const of = (k) => SUBJECTS.findIndex(([, , pattern]) => pattern.test(k.name));
  return SUBJECTS.map(([title, hint], i) => [title, hint, list.filter((k) => of(k) === i)]).filter(([, , knobs]) => knobs.length);
}

function Subject({ name, hint, knobs, value, base, kind, prefix, again, undos }) {
  const live = knobs.filter((k) => k.live), fixed = knobs.filter((k) => !k.live);
  const overridden = (k) => k.overridden !== undefined && k.overridden !== null; // is shown, whatever it belongs to
  const used = live.filter((k) => overridden(k) || !isOfOther(k, value)), others = live.filter((k) => !used.includes(k));
  const id = `${prefix}subject-${name.toLowerCase().replaceAll(" ", "-")}`;
  const show = (list) => <div class="knobs">{list.map((k) => <Knob key={k.name} base={base} kind={kind} prefix={prefix} k={k} again={again} undos={undos} />)}</div>;
  return (
    <section class="subject" aria-labelledby={prefix ? `${prefix.slice(0, -1)} ${id}` : id}>
      <h3 id={id}>{name}{hint && <small> {hint}</small>}</h3>
      {used.length > 0 && show(used)}
      {others.length > 0 && <details class="fixed others"><summary>{others.length} of other policies: {others.map((k) => last(k.name)).join(", ")}</summary>{show(others)}</details>}
      {fixed.length > 0 && <Fixed knobs={fixed} />}
    </section>
  );
}

const last = (name) => name.slice(name.lastIndexOf(".") + 1);

function Fixed({ knobs }) {
  const said = (k) => `${last(k.name)} ${effectiveOf(k) || NONE}`;
  return (
    <details class="fixed">
      <summary>{knobs.length} fixed while the server runs: {knobs.map(said).join(", ")}</summary>
      <dl class="knobs">{knobs.map((k) => (
        <div key={k.name} class="knob fixed-knob" title={k.help}><dt class="knob-name">{k.name}</dt><dd><code>{effectiveOf(k) || NONE}</code></dd><dd class="knob-help">{k.help}</dd></div>
      ))}</dl>
    </details>
  );
}

// `undos`: how many changes were undone here. After one, the field shows the value in effect again, and so it does when
// somebody else changes the knob.
function Knob({ base, kind, prefix, k, again, undos }) {
  const effective = effectiveOf(k);
  const [draft, setDraft] = useState(null); // null: show the effective value
  const [length, setLength] = useState("");
  const [said, setSaid] = useState(null);
  const id = `${prefix}knob-${k.name}`;
  const path = `${base}/${encodeURIComponent(k.name)}`;
  const overridden = k.overridden !== undefined && k.overridden !== null;
  useEffect(() => {
    setDraft(null);
    setLength("");
    if (undos > 0) setSaid(null);
  }, [undos]);
  useEffect(() => {
    if (document.activeElement?.id !== id) setDraft(null);
  }, [effective]);

  const send = async (method, body, good) => {
    setSaid({ text: "…" });
    try {
      const answer = await act(method, path, body);
      setDraft(null);
      setSaid({ good: true, text: good(answer) });
      again();
      readActs();
    } catch (e) {
      setSaid({ wrong: true, text: isAbsent(e) && method === "DELETE" ? "This server cannot unset a knob." : e.message });
    }
  };
  const submit = (e) => {
    e.preventDefault();
    const value = draft ?? effective;
    send("PUT", length ? { value, for: length } : { value }, (a) => `set to ${a ? effectiveOf(a) : value}${length ? ` for ${length}` : ""}`);
  };
  return (
    <form class={overridden ? "knob over" : "knob"} onSubmit={submit}>
      {mayAct.value ? <label class="knob-name" for={id}>{k.name}</label> : <span class="knob-name">{k.name}</span>}
      {mayAct.value ? (
        <span class="knob-field">
          <Field id={id} k={k} value={draft ?? effective} onInput={setDraft} />
          {has("DELETE", ROUTES[kind]) && (
            <select aria-label={`How long to override ${k.name}`} value={length} onChange={(e) => setLength(e.currentTarget.value)}>
              {FOR.map(([v, text]) => <option key={v} value={v}>{text}</option>)}
            </select>
          )}
          <button type="submit" disabled={isStale.value} class={draft !== null && draft !== effective ? "primary" : ""}>Set<span class="hidden"> {k.name}</span></button>
          {overridden && <button type="button" onClick={() => send("DELETE", undefined, () => "back to the configured value")}>Unset<span class="hidden"> {k.name}</span></button>}
        </span>
      ) : <code>{effective || NONE}</code>}
      <p class="knob-help" id={`${id}-help`}>{k.help}</p>
      <Layers k={k} overridden={overridden} />
      <output for={id} class={said?.good ? "said good" : said?.wrong ? "said wrong" : "said"}>{said?.text || ""}</output>
    </form>
  );
}

function Field({ id, k, value, onInput }) {
  const common = { id, "aria-describedby": `${id}-help` };
  if (k.choices || k.type === "bool") {
    const choices = k.choices ? k.choices.split("|") : ["true", "false"];
    return (
      <select {...common} value={value} onChange={(e) => onInput(e.currentTarget.value)}>
        {choices.map((c) => <option key={c} value={c} selected={c === value}>{c}</option>)}
      </select>
    );
  }
  return <input {...common} value={value} spellcheck={false} autocomplete="off" title={k.written} onInput={(e) => onInput(e.currentTarget.value)} />;
}

// For example: configured 4, overridden 8 (9 min left), effective 8
function Layers({ k, overridden }) {
  const left = k.expires_at ? Math.max(0, k.expires_at - serverNow()) : null;
  const configured = k.configured ?? (k.value !== undefined && k.overridden === undefined ? null : k.configured);
  return (
    <p class="layers">
      {configured !== null && configured !== undefined && <span>configured <code>{configured || NONE}</code></span>}
      {overridden && <span class="layer-over">overridden <code>{k.overridden}</code>{left !== null ? `, ${span(left)} left` : ""}</span>}
      {configured !== null && configured !== undefined ? <span>effective <code>{effectiveOf(k) || NONE}</code></span> : <span>default <code>{k.default ?? NONE}</code></span>}
    </p>
  );
}
