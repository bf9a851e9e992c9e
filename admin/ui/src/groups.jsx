// SPDX-License-Identifier: MIT
// Core groups: the settings of a group, what each of its cores does, and what they do at each stage.

import { count, NONE, percent, rate, seconds } from "./format.js";
import { GroupKnobs } from "./knobs.jsx";
import { now } from "./live.js";
import { Card, Mark, StageLink } from "./parts.jsx";

const mean = (x) => (x === null ? NONE : x < 100 ? x.toFixed(1) : count(Math.round(x)));
const share = (part, whole) => (whole > 0 ? percent(part / whole) : NONE);

// The settings in effect as words: ["wavefront", "gate time: 10ms", "starve 25 ms", "idle cores get events of others"].
export const settingsOf = (g) => [g.schedule, g.source ? `in the I/O threads of ${g.source}` : "", `gate ${g.gate}`, g.starve_seconds > 0 ? `starve ${seconds(g.starve_seconds)}` : "no starve",
  g.balance ? "" : "no balance", g.order === "newest" ? "newest first" : ""].filter(Boolean);

const urgentOf = (u) => (u ? [u.events > 0 && `${count(u.events)} events`, u.wait_seconds > 0 && seconds(u.wait_seconds)].filter(Boolean).join(" or ") : NONE);

// The rates and numbers of a core, or of several together, by column.
const COLUMNS = [
  { head: "visits/s", show: (c) => rate(c.visits) },
  { head: "events a visit", show: (c) => mean(c.aVisit) },
  { head: "begun by", show: begunBy, long: true },
  { head: "cut by", show: cutBy, long: true },
  { head: "from queue", show: (c) => share(c.queued, c.events) },
  { head: "dealt/s", show: (c) => rate(c.dealt) },
  { head: "slots moved/s", show: (c) => rate(c.moved), only: (c) => c.moved > 0 }, // of serial keys
  { head: "waiting", show: (c) => count(c.waiting) },
  { head: "longest wait", show: (c) => seconds(c.longest) },
  { head: "blocked", show: (c) => count(c.blocked), only: (c) => c.blocked > 0 }, // calls since the group was made
];

const columnsOf = (cores) => COLUMNS.filter((column) => !column.only || cores.some(column.only));

// For example: "schedule 92 %, starve 8 %".
function begunBy(c) {
  const parts = [["schedule", c.visits - c.urgent - c.starved], ["urgent", c.urgent], ["starve", c.starved]];
  return c.visits > 0 ? parts.filter(([, n]) => n > 1e-9).map(([word, n]) => `${word} ${percent(n / c.visits)}`).join(", ") : NONE;
}

function cutBy(c) {
  const parts = [["gate", c.cutGate], ["urgent", c.cutUrgent], ["starve", c.cutStarved]].filter(([, n]) => n > 0);
  return parts.length ? parts.map(([word, n]) => `${word} ${percent(n / c.visits)}`).join(", ") : c.visits > 0 ? "nothing" : NONE;
}

// For example: "Core 0 of the group core has slept for 6.2 s in a handler of disk; a spare thread serves the queues".
function sleepText(g, c, i) {
  const core = `Core ${i} of the group ${g.name} has slept for ${seconds(c.asleep.seconds)} in a handler of ${c.asleep.stage}`;
  if (i >= g.cores_now) return core;
  return c.spareAsleep ? `${core}; its spare thread has slept, too, for ${seconds(c.spareAsleep.seconds)} in one of ${c.spareAsleep.stage}`
    : `${core}; a spare thread serves the queues`;
}

// The cores that are blocked now: of the group `group`, or those that sleep in a handler of `stage`. "" means any.
export function Blocked({ group = "", stage = "" }) {
  const sleeps = (c) => c.asleep && (!stage || [c.asleep.stage, c.spareAsleep?.stage].includes(stage));
  const items = (now.value?.groups || []).filter((g) => !group || g.name === group).flatMap((g) => g.cores
    .map((c, i) => sleeps(c) && <li key={`${g.name} ${i}`} data-level="warn"><Mark kind="warn" size={18} /><span>{sleepText(g, c, i)}</span></li>).filter(Boolean));
  return items.length > 0 && <ul class="alerts blocked" aria-label="Blocked cores">{items}</ul>;
}

export function Groups() {
  const groups = now.value?.groups || [];
  return groups.map((g) => <GroupCard key={g.name} g={g} />);
}

function GroupCard({ g }) {
  const id = `group-${g.name}`;
  const columns = columnsOf(g.stages.map((s) => s.all));
  return (
    <Card title={`Core group ${g.name}`} id={id} class="group-card" hint={settingsOf(g).join(" · ")}>
      <Blocked group={g.name} />
      <Cores cores={g.cores} n={g.cores_now} by={id} />
      <div class="table-scroll" role="group" aria-label={`Stages of the core group ${g.name}`} tabIndex={0}>
        <table class="cards">
          <caption class="hidden">What the cores of the group do at each stage</caption>
          <thead><tr><th scope="col">stage</th><th scope="col" class="num">of busy time</th>{columns.map((c) => <th key={c.head} scope="col" class="num">{c.head}</th>)}<th scope="col" class="num">urgent from</th></tr></thead>
          <tbody>{g.stages.map((s) => (
            <tr key={s.name}>
              <th scope="row"><StageLink name={s.name} /></th>
              <td class="num" data-label="of busy time">{share(s.all.busy, g.all.busy)}</td>
              <Cells c={s.all} columns={columns} />
              <td class="num" data-label="urgent from">{urgentOf(s.urgent)}</td>
            </tr>
          ))}</tbody>
        </table>
      </div>
      <GroupKnobs group={g.name} />
    </Card>
  );
}

// A table of cores, of a group or of a stage in it. Those from `n` on have left. `by` is the id of its title.
export function Cores({ cores, n, by }) {
  const columns = columnsOf(cores);
  return (
    <div class="table-scroll" role="group" aria-labelledby={by} tabIndex={0}>
      <table class="cards cores">
        <caption class="hidden">What each core does</caption>
        <thead><tr><th scope="col">core</th><th scope="col" class="num">busy</th>{columns.map((c) => <th key={c.head} scope="col" class="num">{c.head}</th>)}</tr></thead>
        <tbody>{cores.map((c, i) => (
          <tr key={i}>
            <th scope="row">core {i}{i < n ? "" : " (left)"}</th>
            <td class="num" data-label="busy"><span class="core-busy"><Bar share={c.busy} asleep={c.asleep} />{percent(c.busy)}</span></td>
            <Cells c={c} columns={columns} />
          </tr>
        ))}</tbody>
      </table>
    </div>
  );
}

function Cells({ c, columns }) {
  return columns.map((column) => {
    const text = column.show(c);
    const name = ["num", text === NONE || text === "nothing" ? "none" : "", text === "0" ? "quiet" : "", column.long ? "long" : ""];
    return <td key={column.head} class={name.filter(Boolean).join(" ")} data-label={column.head}>{text}</td>;
  });
}

function Bar({ share: part, asleep }) {
  return (
    <svg class={asleep ? "core-bar asleep" : "core-bar"} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="core-track" width="100" height="8" />
      <rect class="core-used" width={(100 * Math.min(1, part)).toFixed(1)} height="8" />
    </svg>
  );
}

// For example: "core, wavefront, 2 cores, 43 % and 41 % busy, core 0 blocked in disk".
export function describeGroup(g, n) {
  const shares = n?.present.map((c) => c.busy) || [], many = n?.cores_now ?? g.cores_now;
  const text = shares.length > 4 ? `${percent(Math.min(...shares))} to ${percent(Math.max(...shares))}` : shares.map(percent).join(", ");
  return [`core group ${g.name}`, ...settingsOf(g), `${count(many)} core${many === 1 ? "" : "s"}`, text && `${text} busy`,
    ...(n?.cores || []).map((c, i) => c.asleep && `core ${i} blocked in ${c.asleep.stage}`)].filter(Boolean).join(", ");
}
