// SPDX-License-Identifier: MIT
// Saving: the first request shows which lines of the file would change, and the second one writes them.

import { useEffect, useRef, useState } from "preact/hooks";
import { act } from "./api.js";
import { plural } from "./format.js";
import { configured, has, isStale, mayAct } from "./live.js";
import { Time } from "./parts.jsx";

const PATH = "/api/v1/save";

// Returns [state, ask(preview), close]; state: null | { busy } | { done } | { error }.
export function useSave() {
  const [it, setIt] = useState(null);
  const ask = async (preview) => {
    if (it?.busy) return;
    setIt({ busy: true, done: preview ? null : it?.done });
    try {
      setIt({ done: await act("POST", PATH, preview ? { preview } : {}) });
      if (!preview) configured(); // the file is another one now
    } catch (e) {
      setIt({ error: e.message });
    }
  };
  return [it, ask, () => setIt(null)];
}

export const SaveButton = ({ it, ask, button }) => (mayAct.value && has("POST", PATH) ? (
  <button ref={button} type="button" aria-disabled={Boolean(it?.busy)} disabled={isStale.value} onClick={() => ask(true)}>Save to file …</button>
) : null);

const nameOf = (k) => `${k.owner}.${k.knob} = ${k.value}`;

function titleOf({ done, error }) {
  if (error) return "Nothing was written";
  if (!done) return "Save to file";
  if (!done.saved.length) return "Nothing to save";
  return done.preview ? "What would be written" : "Saved";
}

// The heading gets the focus when something new is shown.
export function SavePanel({ it, ask, close }) {
  const head = useRef(null), d = it.done;
  useEffect(() => { if (!it.busy) head.current?.focus(); }, [it]);
  const asked = d?.preview && d.saved.length > 0 && d.changes;
  return (
    <section class="card reload" aria-labelledby="save-title" onKeyDown={(e) => { if (e.key === "Escape" && !it.busy) close(); }}>
      <h2 id="save-title" ref={head} tabIndex={-1}>{titleOf(it)}</h2>
      <div role="status">{it.busy && <p class="lead">…</p>}</div>
      {it.error && <pre class="caret" tabIndex={0} role="group" aria-label="Why nothing was written">{it.error}</pre>}
      {d && <p class="lead">{d.saved.length ? <>{plural(d.saved.length, "value")} {d.preview ? "in effect would be" : d.changes ? "were" : "are already"} written into <code>{d.file}</code>: {d.saved.map(nameOf).join(", ")}.</> : "No knob is overridden permanently."}</p>}
      {d?.preview && d.saved.length > 0 && !d.changes && <p class="lead">The file has these values already.</p>}
      {d?.changes && <pre class="caret diff" tabIndex={0} role="group" aria-label="Lines of the file that change">{d.changes.replace(/\n$/, "").split("\n").map((line, i) => <span key={i} class={line.startsWith("+") ? "added" : "removed"}>{`${line}\n`}</span>)}</pre>}
      {d?.left.map((k) => <p class="lead" key={nameOf(k)}>Not saved, since it is only until <Time at={k.expires_at} />: {nameOf(k)}.</p>)}
      <p class="acts">
        {asked && <button type="button" class="primary" aria-disabled={Boolean(it.busy)} disabled={isStale.value} onClick={() => ask(false)}>Write the file</button>}
        {!it.busy && <button type="button" onClick={close}>{asked ? "Cancel" : "Close"}</button>}
      </p>
    </section>
  );
}
