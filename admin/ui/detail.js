// SPDX-License-Identifier: MIT
// One stage: its classes, what only its type counts, and its knobs, the live ones with a field.
//
// Classes and metrics are drawn anew with each answer; knobs only when the stage is chosen or one of
// them was turned, so that what is being typed stays.

import { count, degraded, el, NONE, rate, seconds } from "/format.js";
import { lostText } from "/stages.js";

// Knobs that do nothing where a stage runs: a source has no door, an inline stage no queue.
const UNUSED = {
  source: /^(threads|queue|cohort|admission)\.|^(mode|key|group)$/,
  inline: /^(threads|queue|cohort)\.|^group$/,
};

export class Detail {
  constructor(box) {
    this.box = box;
    this.name = null;
  }

  choose(name) {
    this.name = name;
    this.box.hidden = false;
    this.live = el("div", {});
    this.knobs = el("div", { class: "knobs" }, el("p", { class: "hint" }, "Reading the knobs …"));
    this.summary = el("p", { class: "hint" });
    this.box.replaceChildren(
      el("div", { class: "card-head" },
        el("h2", { id: "detail-title" }, "Stage ", el("span", {}, name)),
        el("button", { type: "button", class: "plain", onclick: () => { location.hash = ""; } }, "Close")),
      this.summary, this.live, this.knobs);
    this.placement = null; // known with the next answer, and the knobs are read then
  }

  close() {
    this.name = null;
    this.box.hidden = true;
    this.box.replaceChildren();
  }

  update(now) {
    const s = this.name && now.byName.get(this.name);
    if (!s) return;
    if (s.placement !== this.placement) {
      this.placement = s.placement;
      this.readKnobs();
    }
    this.summary.textContent = [s.summary, `${s.use}, ${s.placement}, ${s.mode}`,
      `admission ${s.admission.policy} (${s.admission.mode})`,
      degraded(s),
      `${count(s.in_flight)} in flight`,
      s.cohort ? `${s.cohort.toFixed(1)} events a call` : null].filter(Boolean).join(" · ");
    this.live.replaceChildren(classes(s), own(s));
  }

  async readKnobs() {
    const name = this.name;
    const url = `/api/v1/stages/${encodeURIComponent(name)}/knobs`;
    try {
      const answer = await fetch(url);
      const body = await answer.json();
      if (this.name !== name) return;
      this.knobs.replaceChildren(...(answer.ok ? this.drawKnobs(body.knobs) : [el("p", { class: "hint" }, body.detail)]));
    } catch {
      if (this.name === name)
        this.knobs.replaceChildren(el("p", { class: "hint" }, "The knobs can not be read now."));
    }
  }

  drawKnobs(knobs) {
    const used = knobs.filter((k) => !UNUSED[this.placement]?.test(k.name));
    if (!used.length) return [];
    return [el("h3", {}, "Knobs"), el("div", { class: "knob-grid" }, ...used.map((k) => this.knob(k)))];
  }

  knob(k) {
    const id = `knob-${k.name}`;
    const said = el("output", { class: "said", for: id });
    const label = el("label", { for: id, title: k.help }, k.name);
    if (!k.live)
      return el("div", { class: "knob" }, el("span", { title: k.help }, k.name),
        el("code", { title: "fixed while the server runs" }, k.value || NONE));
    const field = k.choices
      ? el("select", { id }, ...k.choices.split("|").map((c) => el("option", { selected: c === k.value }, c)))
      : el("input", { id, value: k.value, spellcheck: "false", autocomplete: "off" });
    return el("form", { class: "knob", onsubmit: (e) => {
      e.preventDefault();
      this.turn(k, field, said);
    } }, label, el("span", { class: "knob-field" }, field, el("button", { type: "submit" }, "Set")), said);
  }

  // The server says what is wrong with a value, in the words of `weir check`.
  async turn(k, field, said) {
    const url = `/api/v1/stages/${encodeURIComponent(this.name)}/knobs/${encodeURIComponent(k.name)}`;
    said.className = "said";
    said.textContent = "…";
    try {
      const answer = await fetch(url, { method: "PUT", headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ value: field.value }) });
      const body = await answer.json();
      said.className = answer.ok ? "said good" : "said wrong";
      said.textContent = answer.ok ? `set to ${body.value}` : body.detail;
      if (answer.ok) field.value = body.value;
    } catch {
      said.className = "said wrong";
      said.textContent = "the server does not answer";
    }
  }
}

function classes(s) {
  const q = (x) => (x.n > 0 ? `${seconds(x.p50)} · ${seconds(x.p99)}` : NONE);
  const row = (c) => el("tr", {}, el("th", { scope: "row" }, c.name),
    ...[rate(c.offered), rate(c.completed), lostText(c), rate(c.failed), count(c.queued), q(c.wait), q(c.service)]
      .map((text) => el("td", { class: "num" }, text)));
  const heads = ["class", "in/s", "completed/s", "shed/s", "failed/s", "queued", "wait p50 · p99", "service p50 · p99"];
  return el("div", { class: "table-scroll" }, el("table", { class: "plain" },
    el("thead", {}, el("tr", {}, ...heads.map((h, i) => el("th", { scope: "col", class: i ? "num" : "" }, h)))),
    el("tbody", {}, ...s.classes.map(row))));
}

function own(s) {
  if (!s.own.length) return el("div");
  const unit = (m) => (m.unit && m.unit !== "events" ? ` ${m.unit}` : "");
  return el("dl", { class: "own" }, ...s.own.map((m) => el("div", { title: m.help },
    el("dt", {}, m.name.replace(/_total$/, "").replaceAll("_", " ")),
    el("dd", {}, m.rate === null ? count(m.value) + unit(m) : `${rate(m.rate)}${unit(m)}/s`,
      m.rate === null ? null : el("small", {}, ` of ${count(m.value)}`)))));
}
