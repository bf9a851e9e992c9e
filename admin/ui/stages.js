// SPDX-License-Identifier: MIT
// The table of stages: the twin of the graph, with every number. Rows are made once per set of
// stages; then only the text of cells changes.

import { count, degraded, el, NONE, rate, seconds, setAttr, setText, word } from "/format.js";

const p50p99 = (q) => (q.n > 0 ? `${seconds(q.p50)} · ${seconds(q.p99)}` : NONE);

export const shedText = (shedBy) => {
  const some = Object.entries(shedBy).filter(([, r]) => r > 0).sort((a, b) => b[1] - a[1]);
  return some.length ? some.map(([reason, r]) => `${rate(r)} ${word(reason)}`).join(", ") : "0";
};

// What was shed here, and what doors upstream refused for the sake of this stage.
export const lostText = (x) => {
  if (!(x.ahead > 0)) return shedText(x.shedBy);
  const ahead = `${rate(x.ahead)} refused ahead`;
  return x.shed > 0 ? `${shedText(x.shedBy)}, ${ahead}` : ahead;
};

const pooled = (f) => (s) => (s.hasQueue ? f(s) : NONE);

// One row per column: head, group of columns, word for it on a small screen, what to show, and when
// it is a warning.
const COLUMNS = [
  { head: "in/s", group: "Rate", label: "in/s", show: (s) => rate(s.in) },
  { head: "out/s", group: "Rate", label: "out/s", show: (s) => (s.links.length ? rate(s.out) : rate(s.done)) },
  { head: "length", group: "Queue", label: "queue", warn: (s) => s.fill > 0.8,
    show: pooled((s) => `${count(s.queue.length)} of ${count(s.queue.limit)}`) },
  { head: "oldest", group: "Queue", label: "oldest wait", warn: (s) => s.queue.oldest_wait_seconds > 1,
    show: pooled((s) => (s.queue.length ? seconds(s.queue.oldest_wait_seconds) : NONE)) },
  { head: "p50 · p99", group: "Wait", label: "wait p50 · p99", long: true, show: pooled((s) => p50p99(s.wait)) },
  { head: "p50 · p99", group: "Service", label: "service p50 · p99", long: true, show: (s) => p50p99(s.service) },
  { head: "longest now", group: "Service", label: "running for",
    show: (s) => (s.longest_running_seconds > 0 ? seconds(s.longest_running_seconds) : NONE) },
  { head: "busy", group: "Threads", label: "threads busy", show: pooled((s) => count(s.threads.busy)) },
  { head: "spin", group: "Threads", label: "spinning", show: pooled((s) => count(s.threads.spinning)) },
  { head: "idle", group: "Threads", label: "idle", show: pooled((s) => count(s.threads.idle)) },
  { head: "target", group: "Threads", label: "target", show: pooled((s) => `${count(s.threads.target)} of ${s.threads.min}–${s.threads.max}`) },
  { head: "shed/s", group: "Lost", label: "shed/s", long: true, show: lostText, warn: (s) => s.shed > 0 || s.ahead > 0 },
  { head: "failed/s", group: "Lost", label: "failed/s", show: (s) => rate(s.failed), warn: (s) => s.failed > 0 },
];

export class StagesTable {
  constructor(box, onChoose) {
    this.box = box;
    this.onChoose = onChoose;
    this.names = "";
    this.rows = [];
  }

  update(now) {
    const names = now.stages.map((s) => s.name).join("\n");
    if (names !== this.names) this.build(now.stages);
    this.names = names;
    now.stages.forEach((s, i) => this.refresh(this.rows[i], s));
  }

  build(stages) {
    const body = el("tbody");
    this.rows = stages.map((s) => {
      const cells = COLUMNS.map((c) => el("td", { "data-label": c.label }));
      const button = el("button", { class: "name", type: "button", onclick: () => this.onChoose(s.name) }, s.name);
      const use = el("span", { class: "use" });
      body.append(el("tr", {}, el("th", { scope: "row" }, button, use), ...cells));
      return { cells, use };
    });
    this.box.replaceChildren(el("table", { class: "stages" },
      el("caption", { class: "hidden" }, "Every stage with its numbers"), head(), body));
  }

  refresh(row, s) {
    setText(row.use, [where(s), degraded(s)].filter(Boolean).join(" · "));
    COLUMNS.forEach((c, i) => {
      const text = c.show(s);
      setText(row.cells[i], text);
      setAttr(row.cells[i], "class", ["num", c.long && text !== "0" && "long", text === NONE && "none", text === "0" && "quiet",
        c.warn && c.warn(s) && "alarm"].filter(Boolean).join(" "));
    });
  }
}

function where(s) {
  const place = { source: "source", inline: "inline", group: `group ${s.group}` }[s.placement] || "own pool";
  const mode = s.mode === "shared" ? "" : `, ${s.mode}`;
  return `${s.use} · ${place}${mode}`;
}

function head() {
  const groups = [];
  for (const c of COLUMNS) {
    if (groups.at(-1)?.name === c.group) groups.at(-1).n++;
    else groups.push({ name: c.group, n: 1 });
  }
  return el("thead", {},
    el("tr", {}, el("th", { rowspan: 2, scope: "col" }, "Stage"),
      ...groups.map((g) => el("th", { colspan: g.n, scope: "colgroup", class: "group" }, g.name))),
    el("tr", {}, ...COLUMNS.map((c) => el("th", { scope: "col", class: "num" }, c.head))));
}
