// SPDX-License-Identifier: MIT
// One sentence about the server: the most serious problem found.

import { count, degraded, rate, seconds, word } from "./format.js";

const FULL = 0.8; // a queue filled beyond this share gets a warning: a guess
const OLD_S = 1; // an event that has waited longer gets a warning: a guess

// { level: "ok" | "warn" | "bad" | "wait", text }. The server itself determines its bottleneck and its alerts; they are
// not recomputed here.
export function verdict(graph, now, bottleneck = null, alerts = []) {
  if (graph.draining) return { level: "wait", text: draining(now) };
  if (!graph.ready) return { level: "wait", text: "Starting: the server does not accept work yet." };
  if (!now) return { level: "wait", text: "Measuring: the first rates appear in a second." };
  for (const rule of RULES) {
    const found = rule(now, bottleneck, alerts);
    if (found) return found.level === "ok" ? found : { ...found, text: found.text + limit(found, bottleneck) };
  }
  return { level: "ok", text: `Healthy: ${load(now)}, nothing shed${slowest(now)}.` };
}

const RULES = [books, threads, trouble, stuck, overload, turned, steered, slow, filling, waiting, failing, limited, cheap, unsaved, idle];

// The bottleneck as a sentence of the server, to append to a problem. "" if there is no bottleneck
// or the problem already contains it.
function limit(found, bottleneck) {
  return bottleneck?.limits && !found.text.includes(bottleneck.text) ? ` ${bottleneck.text}` : "";
}

// Paused or drained, by an operator.
export const isSteered = (s) => Boolean(s.state && s.state !== "running");

const sentence = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}.`;
const alertOf = (alerts, name) => alerts.find((a) => a.name === name);

function stuck(now, bottleneck, alerts) {
  const a = alertOf(alerts, "stage_stuck");
  return a && bad(`Stuck: ${a.text}.`);
}

function limited(now, bottleneck) {
  return bottleneck?.chronic ? warn(`Limited: ${bottleneck.text}`) : null;
}

function unsaved(now, bottleneck, alerts) {
  const a = alertOf(alerts, "history_file");
  return a && warn(sentence(a.text));
}

function draining(now) {
  const left = now ? now.all.inFlight : 0;
  return `Draining: ${rate(left)} event${left === 1 ? "" : "s"} in flight, new work is not accepted.`;
}

const load = (now) => `${rate(now.all.requests)} requests/s`;

function slowest(now) {
  const s = now.all.slowest;
  return s ? `, slowest stage ${s.name} p99 ${seconds(s.p99)}` : "";
}

function books({ stages }) {
  for (const s of stages) {
    if (Math.abs(s.law.residual) > s.law.slack)
      return bad(`Bug: the counters of ${s.name} are off by ${s.law.residual} events.`);
    if (s.unhandled > 0)
      return bad(`Bug: the handler of ${s.name} leaves ${rate(s.unhandled)} events/s unhandled.`);
  }
  return null;
}

function threads({ stages }) {
  const s = stages.find((x) => x.newFailures > 0);
  return s && bad(`Threads of ${s.name} die or cannot be created: ${s.newFailures} in the last few seconds.`);
}

// The reason why /readyz answers 503.
function trouble({ stages }) {
  const s = stages.find((x) => x.trouble);
  return s && bad(`Not ready: stage ${s.name} is in trouble: ${s.trouble}.`);
}

// Refusals by a stage that an operator drains are not overload.
function overload(now) {
  const events = (s) => s.shed - s.away - (s.shedBy.draining || 0);
  const worst = now.stages.filter((s) => events(s) > 0 && Object.keys(s.shedBy).length).sort((a, b) => events(b) - events(a))[0];
  if (!worst) return null;
  const shed = events(worst);
  const reason = Object.entries(worst.shedBy).filter(([r]) => r !== "draining").sort((a, b) => b[1] - a[1])[0][0];
  const share = Math.min(100, 100 * shed / Math.max(worst.in, shed));
  const more = now.all.away > 0 ? `; in front of the graph, ${away(now)}` : "";
  return bad(`Overloaded: ${worst.name} sheds ${rate(shed)} of ${rate(worst.in)} events/s ` +
    `(${share < 1 ? "<1" : Math.round(share)} %, ${word(reason)})${sake(now)}${more}${slowest(now)}.`);
}

// For example "web turns away 1.2k/s (connections refused for exceeding max_per_address)": clients that a
// limit of the source refused before they reached the graph.
function away(now) {
  const s = [...now.stages].sort((a, b) => b.away - a.away)[0];
  const limits = [...s.turnedAway].sort((a, b) => b.rate - a.rate).map((m) => m.help);
  return `${s.name} turns away ${rate(s.away)}/s (${limits.slice(0, 2).join("; ")})`;
}

function turned(now) {
  return now.all.away > 0 ? bad(`Turning away: ${away(now)}; ${load(now)} are admitted${slowest(now)}.`) : null;
}

// For example "work is paused, 532 waiting; disk is drained, 190/s refused".
function steered(now) {
  const list = now.stages.filter(isSteered).map((s) => `${s.name} is ${s.state === "draining" ? "being drained" : s.state}` +
    `${s.queue.length > 0 ? `, ${count(s.queue.length)} waiting` : ""}${s.shed > 0 ? `, ${rate(s.shed)}/s refused` : ""}`);
  return list.length > 0 && warn(`By an operator: ${list.slice(0, 3).join("; ")}${list.length > 3 ? `; ${list.length - 3} more` : ""}.`);
}

// Stages also refuse events on behalf of stages downstream. The downstream stage is the one that
// lacks capacity, so it is named.
function sake(now) {
  const s = now.stages.filter((x) => x.ahead > 0).sort((a, b) => b.ahead - a.ahead)[0];
  return s ? `, ${rate(s.ahead)}/s are refused upstream on behalf of ${s.name}` : "";
}

function slow(now) {
  const s = now.stages.find((x) => x.slo_seconds && (x.wait.p99 || 0) + (x.service.p99 || 0) > x.slo_seconds);
  return s && warn(`Slow: ${s.name} takes ${seconds((s.wait.p99 || 0) + (s.service.p99 || 0))} (p99), ` +
    `but its objective is ${seconds(s.slo_seconds)}; ${load(now)}, nothing shed.`);
}

function filling(now) {
  const s = now.stages.filter((x) => x.fill > FULL).sort((a, b) => b.fill - a.fill)[0];
  return s && warn(`Filling up: the queue of ${s.name} is ${Math.round(s.fill * 100)} % full` +
    `${s.held > 0 ? `, including ${count(s.held)} held` : ""}; ${load(now)}, nothing shed.`);
}

function waiting(now) {
  const s = now.stages.filter((x) => x.queue.oldest_wait_seconds > OLD_S)
    .sort((a, b) => b.queue.oldest_wait_seconds - a.queue.oldest_wait_seconds)[0];
  return s && warn(`Waiting: the oldest event at ${s.name} has waited ${seconds(s.queue.oldest_wait_seconds)}; ` +
    `${load(now)}.`);
}

function failing(now) {
  const s = now.stages.filter((x) => x.failed > 0).sort((a, b) => b.failed - a.failed)[0];
  return s && warn(`Failing: ${rate(s.failed)} events/s fail in ${s.name}; ${load(now)}, nothing shed.`);
}

function cheap(now) {
  const s = now.stages.filter((x) => x.degradation > 0).sort((a, b) => b.degradation - a.degradation)[0];
  return s && warn(`Reduced quality: ${s.name} is ${degraded(s)}; ${load(now)}, nothing shed.`);
}

function idle(now) {
  const quiet = now.all.requests === 0 && now.all.inFlight === 0;
  return quiet && { level: "ok", text: "Idle: nothing to do, ready for work." };
}

const bad = (text) => ({ level: "bad", text });
const warn = (text) => ({ level: "warn", text });
