// SPDX-License-Identifier: MIT
// Calls to the server. A failure is a Problem with a message for the user; its status is 0 if the
// server did not answer.

import { signal } from "@preact/signals";

const PATIENCE_MS = 4000;

export const locked = signal(false); // the server requires a login

export class Problem extends Error {
  constructor(status, text) {
    super(text);
    this.status = status; // 0: no answer
  }
}

// The server does not have this path: it is older, or was built without the feature.
export const isAbsent = (e) => e instanceof Problem && (e.status === 404 || e.status === 405 || e.status === 501);

async function call(path, options) {
  let answer;
  try {
    answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS), ...options });
  } catch {
    throw new Problem(0, "The server does not answer.");
  }
  let body = null;
  try {
    body = await answer.json();
  } catch {
    if (answer.ok) return null; // 204, or plain text
  }
  if (answer.status === 401) locked.value = true;
  if (!answer.ok) throw new Problem(answer.status, String(body?.detail || body?.title || `status ${answer.status}`));
  return body;
}

export const get = (path) => call(path);

export const act = (method, path, body) =>
  call(path, { method, headers: { "Content-Type": "application/json" },
    body: method === "DELETE" ? undefined : JSON.stringify(body ?? {}) });

const SESSION = "/api/v1/session";
const JSON_TYPE = { "Content-Type": "application/json" };

// Send the token once; from then on the browser sends a session cookie instead.
export async function login(token) {
  await call(SESSION, { method: "POST", headers: { ...JSON_TYPE, Authorization: `Bearer ${token}` }, body: "{}" });
  locked.value = false;
}

export async function logout() {
  await call(SESSION, { method: "DELETE", headers: JSON_TYPE });
  locked.value = true;
}

const below = (root) => (...rest) => [root, ...rest.map(encodeURIComponent)].join("/");

export const stagePath = below("/api/v1/stages");
export const groupPath = below("/api/v1/groups");
export const classPath = below("/api/v1/classes");
