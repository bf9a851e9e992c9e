// SPDX-License-Identifier: MIT
// One line about the server: the most serious problem found. Below it come details, which do not repeat
// the numbers of the tiles.

import { count, degraded, percent, plural, seconds, shorten, word } from "./format.js";

const FULL = 0.8; // a queue filled beyond this share gets a warning: a guess
const OLD_S = 1; // an event that has waited longer gets a warning: a guess
const LINE = 90; // characters of the headline: one line of the page at 1280 px
const NAME = 24; // characters of a stage's name in it; its card and the graph have the whole name

// { level: "ok" | "warn" | "bad" | "wait", text, more }. `text` is at most LINE characters long; `more` is a
// list of sentences. The server itself determines its bottleneck and its alerts; they are not recomputed here.
export function verdict(graph, now, bottleneck = null, alerts = []) {
  const { level, text, more = [] } = find(graph, now, bottleneck, alerts);
  return { level, text: text.length > LINE ? `${text.slice(0, LINE - 1)}…` : text, more: more.filter(Boolean).map(sentence) };
}

function find(graph, now, bottleneck, alerts) {
  if (graph.draining) return wait("Draining: new work is not accepted.", now && `${plural(now.all.inFlight, "event")} left`);
  if (!graph.ready) return wait("Starting: the server does not accept work yet.");
  if (!now) return wait("Measuring: the first rates appear in a second.");
  for (const rule of RULES) {
    const found = rule(now, bottleneck, alerts);
    if (found) return found.level === "ok" ? found : { ...found, more: withLimit(found.more, bottleneck) };
  }
  return { level: "ok", text: "Healthy: nothing is refused, nothing fails, and no queue is slow." };
}

const RULES = [books, threads, trouble, stuck, overload, turned, steered, slow, filling, waiting, failing, limited, cheap, unsaved, idle];

const bad = (text, ...more) => ({ level: "bad", text, more });
const warn = (text, ...more) => ({ level: "warn", text, more });
const wait = (text, ...more) => ({ level: "wait", text, more });

// The server's sentence about its bottleneck comes last, once.
const withLimit = (more, bottleneck) => (bottleneck?.limits && !more.includes(bottleneck.text) ? [...more, bottleneck.text] : more);

// Paused or drained, by an operator.
export const isSteered = (s) => Boolean(s.state && s.state !== "running");

const nameOf = (s) => shorten(s.name, NAME);
// A text of the server may begin with the name of a stage, whose case stays.
const sentence = (text) => `${text}${/[.!?]$/.test(text) ? "" : "."}`;
const capital = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
const alertOf = (alerts, name) => alerts.find((a) => a.name === name);
const most = (list, of) => list.filter((s) => of(s) > 0).sort((a, b) => of(b) - of(a))[0];

function stuck(now, bottleneck, alerts) {
  const a = alertOf(alerts, "stage_stuck");
  return a && bad(`Stuck: a handler of ${a.stage ? shorten(a.stage, NAME) : "a stage"} does not return.`, a.text);
}

function limited(now, bottleneck) {
  return bottleneck?.chronic ? warn(`Limited: ${shorten(bottleneck.stage, NAME)} limits the server.`, bottleneck.text) : null;
}

function unsaved(now, bottleneck, alerts) {
  const a = alertOf(alerts, "history_file");
  return a && warn("History: samples are not written to their file.", a.text);
}

function books({ stages }) {
  for (const s of stages) {
    if (Math.abs(s.law.residual) > s.law.slack) return bad(`Bug: the counters of ${nameOf(s)} are off by ${count(s.law.residual)} events.`);
    if (s.unhandled > 0) return bad(`Bug: the handler of ${nameOf(s)} leaves events unhandled.`);
  }
  return null;
}

function threads({ stages }) {
  const s = stages.find((x) => x.newFailures > 0);
  return s && bad(`Threads of ${nameOf(s)} die or cannot be created: ${count(s.newFailures)} just now.`);
}

// The reason why /readyz answers 503.
function trouble({ stages }) {
  const s = stages.find((x) => x.trouble);
  return s && bad(`Not ready: stage ${nameOf(s)} is in trouble.`, capital(s.trouble));
}

// Refusals by a stage that an operator drains are not overload.
function overload(now) {
  const events = (s) => (Object.keys(s.shedBy).length ? s.shed - s.away - (s.shedBy.draining || 0) : 0);
  const worst = most(now.stages, events);
  if (!worst) return null;
  const reason = Object.entries(worst.shedBy).filter(([r]) => r !== "draining").sort((a, b) => b[1] - a[1])[0][0];
  return bad(`Overloaded: ${nameOf(worst)} sheds ${percent(events(worst) / Math.max(worst.in, events(worst)))} of its events (${word(reason)}).`,
    sake(now), now.all.away > 0 && away(now));
}

// For example "In front of the graph, web turns clients away: connections refused for exceeding
// max_per_address": clients that a limit of the source refused before they reached the graph.
function away(now) {
  const s = most(now.stages, (x) => x.away);
  const limits = [...s.turnedAway].sort((a, b) => b.rate - a.rate).map((m) => m.help);
  return `In front of the graph, ${s.name} turns clients away: ${limits.slice(0, 2).join("; ")}`;
}

function turned(now) {
  return now.all.away > 0 ? bad(`Turning away: ${nameOf(most(now.stages, (x) => x.away))} refuses clients before they reach the graph.`, away(now)) : null;
}

// For example "work is paused, 532 waiting"; the first stage is in the headline.
function steered(now) {
  const list = now.stages.filter(isSteered), state = (s) => (s.state === "draining" ? "being drained" : s.state);
  if (!list.length) return null;
  const [first, ...others] = list;
  return warn(`By an operator: ${nameOf(first)} is ${state(first)}${first.queue.length > 0 ? `, ${count(first.queue.length)} waiting` : ""}${others.length ? `; ${others.length} more` : ""}.`,
    others.length && `Also ${others.map((s) => `${s.name} (${state(s)})`).join(", ")}`);
}

// Stages also refuse events on behalf of stages downstream. The downstream stage is the one that
// lacks capacity, so it is named.
function sake(now) {
  const s = most(now.stages, (x) => x.ahead);
  return s && `Events are refused upstream on behalf of ${s.name}, which lacks capacity`;
}

function slow(now) {
  const took = (x) => (x.wait.p99 || 0) + (x.service.p99 || 0);
  const s = now.stages.find((x) => x.slo_seconds && took(x) > x.slo_seconds);
  return s && warn(`Slow: ${nameOf(s)} takes ${seconds(took(s))} (p99); its objective is ${seconds(s.slo_seconds)}.`);
}

function filling(now) {
  const s = most(now.stages, (x) => x.fill);
  return s && s.fill > FULL ? warn(`Filling up: the queue of ${nameOf(s)} is ${percent(s.fill)} full.`, s.held > 0 && `Its limit also counts ${count(s.held)} held events`) : null;
}

function waiting(now) {
  const s = most(now.stages, (x) => x.queue.oldest_wait_seconds);
  return s && s.queue.oldest_wait_seconds > OLD_S ? warn(`Waiting: the oldest event at ${nameOf(s)} has waited ${seconds(s.queue.oldest_wait_seconds)}.`) : null;
}

function failing(now) {
  const s = most(now.stages, (x) => x.failed);
  return s && warn(`Failing: ${percent(s.failed / (s.failed + s.done))} of the events of ${nameOf(s)} fail.`);
}

function cheap(now) {
  const s = most(now.stages, (x) => x.degradation);
  return s && warn(`Reduced quality: ${nameOf(s)} is ${degraded(s)}.`);
}

function idle(now) {
  return now.all.requests === 0 && now.all.inFlight === 0 && { level: "ok", text: "Idle: nothing to do, ready for work." };
}
