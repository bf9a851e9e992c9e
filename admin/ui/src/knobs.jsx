// SPDX-License-Identifier: MIT
// The knobs of a stage or a core group with three values each: configured (the file), overridden (an operator) and effective.

import { useState } from "preact/hooks";
import { act, groupPath, isAbsent, stagePath } from "./api.js";
import { has, isStale, mayAct, readActs, serverNow } from "./live.js";
import { Absent, Card } from "./parts.jsx";
import { NONE, span } from "./format.js";
import { useAnswer } from "./use.js";

// Knobs that have no effect with a placement: a source has no admission, an inline stage no queue.
const UNUSED = {
  source: /^(threads|queue|cohort|admission|degrade)\.|^(mode|key|group)$/,
  inline: /^(threads|queue|cohort)\.|^group$/,
};
const FOR = [["", "until changed"], ["1m", "for 1 min"], ["10m", "for 10 min"], ["1h", "for 1 h"]];
const ROUTES = { stage: "/api/v1/stages/{stage}/knobs/{knob}", group: "/api/v1/groups/{group}/knobs/{knob}" };

export const effectiveOf = (k) => k.effective ?? k.value ?? "";

export function Knobs({ stage, placement }) {
  return <KnobCard base={stagePath(stage, "knobs")} kind="stage" placement={placement} title="Knobs" id="knobs-title" />;
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

// `prefix`: of the ids of the knobs' fields.
function KnobCard({ base, kind, placement, title, id, prefix = "" }) {
  const { data, error, again } = useAnswer(base, 5);
  const [undone, setUndone] = useState(null);
  const list = (data?.knobs || []).filter((k) => !UNUSED[placement]?.test(k.name));
  const live = list.filter((k) => k.live), fixed = list.filter((k) => !k.live);
  const undo = async () => {
    try {
      await act("POST", "/api/v1/undo", {});
      setUndone({ good: true, text: "The last change was undone." });
      again();
      readActs();
    } catch (e) {
      setUndone({ text: isAbsent(e) ? "This server does not support undo." : e.message });
    }
  };
  return (
    <Card title={title} id={id} hint={mayAct.value ? "Changes take effect immediately and are recorded." : "Read-only: a viewer cannot make changes."}
      tools={mayAct.value && has("POST", "/api/v1/undo") && <button type="button" class="plain" onClick={undo}>Undo the last change</button>}>
      {undone && <output class={undone.good ? "said good" : "said wrong"}>{undone.text}</output>}
      {error && !data && <Absent>{error}</Absent>}
      {live.length > 0 && <div class="knobs">{live.map((k) => <Knob key={k.name} base={base} kind={kind} prefix={prefix} k={k} again={again} />)}</div>}
      {fixed.length > 0 && (
        <details class="fixed">
          <summary>{fixed.length} fixed while the server runs</summary>
          <dl class="knobs">{fixed.map((k) => (
            <div key={k.name} class="knob fixed-knob" title={k.help}><dt class="knob-name">{k.name}</dt><dd><code>{effectiveOf(k) || NONE}</code></dd><dd class="knob-help">{k.help}</dd></div>
          ))}</dl>
        </details>
      )}
      {data && !list.length && <p class="absent">This {kind} has no knobs.</p>}
    </Card>
  );
}

function Knob({ base, kind, prefix, k, again }) {
  const effective = effectiveOf(k);
  const [draft, setDraft] = useState(null); // null: show the effective value
  const [length, setLength] = useState("");
  const [said, setSaid] = useState(null);
  const id = `${prefix}knob-${k.name}`;
  const path = `${base}/${encodeURIComponent(k.name)}`;
  const overridden = k.overridden !== undefined && k.overridden !== null;

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
