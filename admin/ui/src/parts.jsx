// SPDX-License-Identifier: MIT
// Small components that several pages share.

import { clock, day, iso, word } from "./format.js";
import { href, RANGES, route, withParams } from "./route.js";

export const MARKS = {
  ok: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm-1.2 14.6L6.4 12.2l1.7-1.7 2.7 2.7 5.1-5.1 1.7 1.7z",
  warn: "M12 2.5L1.5 21h21zM11 9h2v6h-2zm0 7.5h2v2h-2z",
  bad: "M7.5 2h9L22 7.5v9L16.5 22h-9L2 16.5v-9zM11 6.5h2v7h-2zm0 8.8h2v2h-2z",
  wait: "M12 2a10 10 0 1 0 0 20 10 10 0 0 0 0-20zm1 10.4l3.6 2.1-1 1.7-4.6-2.7V6h2z",
};

export const Mark = ({ kind, size = 24 }) => (
  <svg class="mark" viewBox="0 0 24 24" width={size} height={size} aria-hidden="true"><path fill-rule="evenodd" d={MARKS[kind]} /></svg>
);

export function Card({ title, id, hint, tools, children, class: name = "" }) {
  return (
    <section class={`card ${name}`} aria-labelledby={id}>
      <div class="card-head">
        <h2 id={id}>{title}</h2>
        {hint && <p class="hint">{hint}</p>}
        {tools}
      </div>
      {children}
    </section>
  );
}

// A sentence in place of missing content.
export const Absent = ({ children }) => <p class="absent">{children}</p>;

export const StageLink = ({ name }) => (String(name).startsWith("classes.") ? <b>class {name.slice("classes.".length)}</b> : name ? <a class="stage-link" href={href("stage", name)}>{name}</a> : <b>the server</b>);

export function Time({ at, withDay }) {
  return <time dateTime={iso(at)}>{withDay ? `${day(at)} ` : ""}{clock(at)}</time>;
}

export function RangePicker({ range, prefix = "", label = "Time range" }) {
  const key = (k) => withParams({ [`${prefix}range`]: k, [`${prefix}from`]: null, [`${prefix}to`]: null });
  return (
    <nav class="segments" aria-label={label}>
      {Object.keys(RANGES).map((k) => (
        <a key={k} href={key(k)} aria-current={range.live && range.key === k ? "true" : undefined}>{k}</a>
      ))}
      {!range.live && (
        <a href={key(null)} aria-current="true" title="Back to the present">
          {clock(range.from)}–{clock(range.to)} <span aria-hidden="true">✕</span><span class="hidden">, back to the present</span>
        </a>
      )}
    </nav>
  );
}

export function Select({ label, value, options, onChange, id }) {
  return (
    <label class="select" for={id}>
      <span>{label}</span>
      <select id={id} value={value} onChange={(e) => onChange(e.currentTarget.value)}>
        {options.map((o) => {
          const [v, text] = Array.isArray(o) ? o : [o, o];
          return <option key={v} value={v} selected={v === value}>{text}</option>;
        })}
      </select>
    </label>
  );
}

export function Search({ label, hint, value, onInput, id }) {
  return (
    <label class="select" for={id}>
      <span>{label}</span>
      <input id={id} type="search" value={value} placeholder={hint} title={hint} spellcheck={false} onInput={(e) => onInput(e.currentTarget.value)} />
    </label>
  );
}

// ---- decisions and changes ----

export function whatOf(d) {
  const action = word(d.action);
  if (d.from === d.to || d.from === null || d.from === undefined) return action;
  const unit = d.action === "batch" ? "events per call" : d.action === "width" ? "at once" : "threads";
  return `${action}: ${d.from} → ${d.to} ${unit}`;
}

export const actText = (a) => {
  const change = a.from !== undefined && a.from !== null && a.from !== "" ? `${a.from} → ${a.to}` : a.to ?? "";
  return [word(a.what), a.target, change].filter((x) => x !== "" && x !== undefined && x !== null).join(" ");
};

const OUTCOME = { helped: "✓ helped", harmed: "✗ harmed", undone: "↩ undone", "no effect": "– no effect" };

// Marks what an earlier process of the server did.
export const Earlier = ({ of }) => (of.before_restart
  ? <span class="outcome earlier" title="Made by an earlier process of this server; it cannot be undone">⟲ before the restart</span> : null);

export function Decision({ d, withStage = true }) {
  const outcome = d.outcome_30s || d.outcome_5s;
  return (
    <li>
      <Time at={d.time} />
      <div>
        <p class="what">{withStage && <StageLink name={d.stage} />} {whatOf(d)} <span class="actor">{d.actor}</span>
          {outcome && <span class={`outcome ${outcome.replace(" ", "-")}`} title={d.outcome_30s ? "30 s later" : "5 s later"}>{OUTCOME[outcome] || outcome}</span>}<Earlier of={d} /></p>
        {d.rule && <p class="why">{d.rule}{d.limit ? `; limit: ${d.limit}` : ""}</p>}
        {d.inputs && <p class="inputs">{d.inputs}</p>}
      </div>
    </li>
  );
}

export const Empty = ({ children }) => <li class="empty">{children}</li>;

export const pageName = () => route.value.page;
