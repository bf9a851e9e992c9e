// SPDX-License-Identifier: MIT
// What the threads of a stage do and wait for, and the call stack of the last handler that was stuck.

import { percent, seconds } from "./format.js";
import { Card, Time } from "./parts.jsx";

// The states of `thread_seconds_total`, in the order of the bar: work, the waits inside handlers, no work.
const STATES = [
  ["running", "running", "on a core"],
  ["runnable", "without a core", "ready to run, but no core was free"],
  ["io", "I/O", "asleep in the handler, in a system call that waits for data"],
  ["lock", "lock", "asleep in the handler, for a mutex or another futex"],
  ["memory", "memory", "asleep in the handler, in a page fault or a call that changes the address space"],
  ["sleep", "sleep", "asleep in the handler, in nanosleep"],
  ["blocked", "other waits", "asleep in the handler, for another or an unknown reason"],
  ["downstream", "inline stages", "in the inline stages after this one, which its threads run"],
  ["idle", "idle", "without work"],
];

const threads = (n) => (n < 0.005 ? "0" : n < 9.95 ? n.toFixed(2) : n.toFixed(1));

// `times`: how many threads were in each state, on average; null for one that the kernel does not count.
export function ThreadTimes({ times }) {
  const rows = STATES.filter(([key]) => times[key] !== null && times[key] !== undefined).map(([key, word, help]) => ({ key, word, help, n: times[key] }));
  const all = rows.reduce((sum, r) => sum + r.n, 0);
  if (!(all > 0)) return null;
  const waits = rows.filter((r) => !["running", "idle", "downstream"].includes(r.key)).sort((a, b) => b.n - a.n)[0];
  const busy = all - times.idle;
  const said = waits && busy > 0 && waits.n / busy > 0.1 ? `When they have work, they spend ${percent(waits.n / busy)} of the time waiting: ${waits.help}.`
    : busy > 0.01 * all ? "When they have work, they hardly wait." : "They have hardly any work.";
  let at = 0;
  return (
    <Card title="Threads" id="times-title" hint="What they do and wait for, on average over 5 s.">
      <svg class="times" viewBox="0 0 1000 20" preserveAspectRatio="none" role="img" aria-label={rows.filter((r) => r.n > 0).map((r) => `${r.word} ${percent(r.n / all)}`).join(", ")}>
        {rows.map((r) => {
          const x = at, w = 1000 * r.n / all;
          at += w;
          return <rect key={r.key} class={`time-${r.key}`} x={x.toFixed(1)} width={Math.max(0, w - 2).toFixed(1)} height="20"><title>{`${r.word}: ${r.help}`}</title></rect>;
        })}
      </svg>
      <ul class="time-list">{rows.map((r) => (
        <li key={r.key} class={r.n / all < 0.005 ? "quiet" : ""} title={r.help}><i class={`key time-${r.key}`} />{r.word} <b>{percent(r.n / all)}</b> <small>{threads(r.n)}</small></li>
      ))}</ul>
      <p class="sentence">{said}{times.runnable === null ? " The kernel does not count the time without a core; it is part of the others." : ""}</p>
    </Card>
  );
}

export function StuckCall({ call }) {
  return (
    <Card title="Last stuck call" id="stuck-title" hint={`A handler call that took longer than 'threads.stuck'; call ${call.id} of this kind.`}>
      <p class="lead">Found at <Time at={call.time} withDay /> in thread <code>{call.thread}</code>, with {call.type || "an event"}: {call.running ? `it has run for ${seconds(call.seconds)} and has not returned` : `it had run for ${seconds(call.seconds)}, and has returned`}.</p>
      {call.stack.length > 0 && <pre class="caret" tabIndex={0} role="group" aria-label="Its call stack">{call.stack.join("\n")}</pre>}
    </Card>
  );
}
