// SPDX-License-Identifier: MIT
// Reloading: the first request previews what would change, and the second one applies it. If a file
// cannot be used, the page shows exactly the text of `weir check`.

import { useEffect, useRef, useState } from "preact/hooks";
import { act } from "./api.js";
import { plural } from "./format.js";
import { configured, has, isStale, mayAct, readReload, reloads } from "./live.js";
import { Card, Mark, Time } from "./parts.jsx";
import { href } from "./route.js";

const PATH = "/api/v1/reload";
const LOOK_MS = 100; // interval of the polls that check whether a request is complete
const PATIENCE_MS = 60000; // longer than any server takes to start
const SHOWN = 160; // maximum length of a value that is shown

// Request a reload or a preview and wait until it, or a later request, is complete. Returns the
// result.
async function order(preview) {
  const { id } = await act("POST", PATH, preview ? { preview } : {});
  const end = performance.now() + PATIENCE_MS;
  while (performance.now() < end) {
    const answer = await readReload();
    if (answer && answer.done >= id) return cameOf(answer, preview);
    await new Promise((done) => setTimeout(done, LOOK_MS));
  }
  throw new Error("The server did not finish within 60 s.");
}

// If the newest result is a preview by another user, made after our reload, the only thing known
// about ours is whether it failed.
function cameOf({ last, failure }, preview) {
  if (preview || !last.preview) return last;
  return failure || { result: "turned", summary: "", changes: [], errors: [] };
}

// Returns [state, ask(preview), close]; state: null | { busy } | { order } | { error }.
export function useReload() {
  const [it, setIt] = useState(null);
  const ask = async (preview) => {
    if (it?.busy) return;
    setIt({ busy: preview ? "Reading the file …" : "Reloading …", order: preview ? null : it?.order });
    try {
      const done = await order(preview);
      setIt({ order: done });
      if (!done.preview && done.result !== "failed") configured();
    } catch (e) {
      setIt({ error: e.message });
    }
  };
  return [it, ask, () => setIt(null)];
}

export const ReloadButton = ({ it, ask, button }) => (mayAct.value && has("POST", PATH) ? (
  <button ref={button} type="button" aria-disabled={Boolean(it?.busy)} disabled={isStale.value} onClick={() => ask(true)}>Reload …</button>
) : null);

// The preview or the result. The heading gets the focus when a new one is shown.
export function ReloadPanel({ it, ask, close }) {
  const head = useRef(null);
  const o = it.order, asked = o?.preview && o.result !== "failed";
  useEffect(() => { if (!it.busy) head.current?.focus(); }, [it]);
  return (
    <section class="card reload" aria-labelledby="reload-title" onKeyDown={(e) => { if (e.key === "Escape" && !it.busy) close(); }}>
      <h2 id="reload-title" ref={head} tabIndex={-1}>{titleOf(it)}</h2>
      <div role="status">
        {it.busy && <p class="lead">{it.busy}</p>}
        {it.error && <p class="said wrong">{it.error}</p>}
      </div>
      {o && (o.result === "failed" ? <Failed o={o} /> : <Good o={o} />)}
      <p class="acts">
        {asked && <button type="button" class="primary" aria-disabled={Boolean(it.busy)} disabled={isStale.value} onClick={() => ask(false)}>{o.changes.length || o.renewed?.length ? "Apply changes" : "Reload anyway"}</button>}
        {!asked && !it.busy && (it.error || o?.result === "failed") && <button type="button" onClick={() => ask(true)}>Read the file again</button>}
        {!it.busy && <button type="button" onClick={close}>{asked ? "Cancel" : "Close"}</button>}
      </p>
    </section>
  );
}

function titleOf({ busy, order: o, error }) {
  if (error || !o) return "Reload";
  if (o.result === "failed") return "This file cannot be used";
  if (o.preview) return busy ? "Reloading" : "What a reload would change";
  return o.result === "unchanged" ? "Reloaded: nothing changed" : "Reloaded";
}

const HOW = {
  followed: "A new graph is running. The previous one finishes its requests.",
  turned: "The change was applied in place; the graph is the same.",
};

function Good({ o }) {
  return (
    <>
      {o.summary && <p class="lead">{o.summary.slice(0, 1).toUpperCase() + o.summary.slice(1)}.{o.preview ? " Nothing has been done yet." : ""}</p>}
      {!o.preview && HOW[o.result] && <p class="lead">{HOW[o.result]}</p>}
      {o.preview && !o.changes.length && !o.renewed?.length && <p class="lead">A reload would still read the token, certificate and key files again.</p>}
      {o.renewed?.map((r) => <p class="lead" key={r.stage}><b>{r.stage}</b>: {r.text}</p>)}
      {o.changes.length > 0 && <Changes list={o.changes} />}
    </>
  );
}

const EFFECT = {
  live: "in place", rebuild: "rebuilt", add: "new stage", remove: "stage removed", restart: "at the next start",
};
const SIGN = { add: "+", remove: "−", live: "~", rebuild: "~", restart: "~" };

const shown = (value) => (value.length > SHOWN ? `${value.slice(0, SHOWN)} …` : value);

// A missing value is shown as such; an empty one is shown as "".
function Value({ of }) {
  return of === null || of === undefined ? <span class="none">not set</span> : <code>{of === "" ? '""' : shown(of)}</code>;
}

function Changes({ list }) {
  return (
    <ul class="changes" aria-label="Changes" tabIndex={0}>
      {list.map((c) => (
        <li key={c.path} data-effect={c.effect}>
          <span class="sign" aria-hidden="true">{SIGN[c.effect] || "~"}</span>
          <code class="change-path">{c.path}</code>
          <span class="change-values">{valuesOf(c)}</span>
          <span class="effect">{EFFECT[c.effect] || c.effect}</span>
        </li>
      ))}
    </ul>
  );
}

function valuesOf(c) {
  if (c.hidden) return <span class="none">hidden: it comes from the environment</span>;
  if (c.effect === "add" || c.effect === "remove") return <code>{shown(c.to ?? c.from ?? "")}</code>;
  return <><Value of={c.from} /> <span aria-hidden="true">→</span><span class="hidden"> becomes </span> <Value of={c.to} /></>;
}

// The text of `weir check`, and a note that nothing was changed.
function Failed({ o }) {
  return (
    <>
      <pre class="caret" tabIndex={0} role="group" aria-label="Errors in the file">{o.text}</pre>
      <p class="not-changed"><Mark kind="bad" size={18} /> {plural(o.errors.length, "error")}. The running configuration was not changed.</p>
    </>
  );
}

const who = (o) => ({ signal: "a signal", operator: "an operator" })[o.by] || o.by;

// A failed reload, shown until a later one succeeds: in full, or as one line that links to the
// details.
export function FailedReload({ brief }) {
  const o = reloads.value?.failure;
  if (!o) return null;
  if (brief) {
    return (
      <ul class="alerts" aria-label="Configuration" aria-live="polite">
        <li data-level="bad"><Mark kind="bad" size={18} />
          <span>The reload triggered by {who(o)} failed: {plural(o.errors.length, "error")} in the file. The running configuration was not changed. <a href={href("config")}>See what is wrong</a></span>
          <small><Time at={o.at} withDay /></small></li>
      </ul>
    );
  }
  return (
    <Card title="The last reload failed" id="failed-title" hint={<>Triggered by {who(o)}, <Time at={o.at} withDay />.</>}>
      <Failed o={o} />
    </Card>
  );
}

// Earlier graphs may still be finishing their requests.
export function Draining() {
  const n = reloads.value?.draining;
  return n ? <p class="hint">{plural(n, "earlier graph")} {n === 1 ? "is finishing its" : "are finishing their"} requests.</p> : null;
}
