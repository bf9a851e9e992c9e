// SPDX-License-Identifier: MIT
// The kill switch: the strongest admission mode that stages may use. It applies to the whole server at
// once, so a second press confirms it.

import { useState } from "preact/hooks";
import { act } from "./api.js";
import { has, isStale, mayAct, mode } from "./live.js";
import { Card } from "./parts.jsx";

const PATH = "/api/v1/overload";

export const MODES = {
  enforce: "Stages refuse events as their policies say.",
  shadow: "Events that overload control would refuse are admitted and counted.",
  off: "Overload control does not run: only full queues and deadlines refuse events.",
};

export function Overload() {
  const [sure, setSure] = useState("");
  const [said, setSaid] = useState(null);
  const acts = mayAct.value && has("PUT", PATH);
  const set = async (to) => {
    if (sure !== to) return setSure(to);
    setSure("");
    try {
      mode.value = (await act("PUT", PATH, { mode: to })).mode;
      setSaid({ good: true, text: `overload control: ${mode.value}` });
    } catch (e) {
      setSaid({ text: e.message });
    }
  };
  return (
    <Card title="Overload control" id="overload-title" hint={`Of the whole server: ${mode.value}. ${MODES[mode.value] || ""}`}>
      {acts ? (
        <div class="acts" role="group" aria-labelledby="overload-title">
          {Object.entries(MODES).map(([name, help]) => (
            <button key={name} type="button" title={help} aria-pressed={mode.value === name} disabled={isStale.value || mode.value === name}
              class={sure === name ? "sure" : mode.value === name ? "chosen" : ""} onClick={() => set(name)} onBlur={() => setSure((x) => (x === name ? "" : x))}>
              {sure === name ? `${name}? Press again` : name}</button>
          ))}
          <output class={said ? (said.good ? "said good" : "said wrong") : "said"}>{said?.text || (sure && MODES[sure]) || ""}</output>
        </div>
      ) : <p class="absent">{mayAct.value ? "This server has no such switch." : "Read-only: a viewer cannot make changes."}</p>}
    </Card>
  );
}
