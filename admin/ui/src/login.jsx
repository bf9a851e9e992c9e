// SPDX-License-Identifier: MIT
// Who looks: the form that a server with tokens shows first, and the way out. The token is sent once and kept nowhere:
// the server gives a cookie for it that no script can read.

import { useEffect, useRef, useState } from "preact/hooks";
import { locked, login, logout } from "./api.js";
import { session } from "./live.js";

export function Login() {
  const [failed, setFailed] = useState(""), [busy, setBusy] = useState(false);
  const field = useRef(null);
  useEffect(() => field.current.focus(), []);
  const submit = async (e) => {
    e.preventDefault();
    const token = field.current.value.trim();
    if (busy || !token) return;
    setBusy(true);
    setFailed("");
    try {
      await login(token);
    } catch (problem) {
      setFailed(problem.status === 401 ? "The server does not know this token." : problem.message);
      setBusy(false);
      field.current?.select();
    }
  };
  return (
    <section class="card login" aria-labelledby="login-head">
      <h1 id="login-head">Log in</h1>
      <p class="hint">This server asks for a token. It is in the file that its configuration names under <code>admin: tokens:</code></p>
      <form onSubmit={submit}>
        <label for="login-token">Token</label>
        <input id="login-token" ref={field} type="password" autocomplete="current-password" spellcheck={false} required
          aria-invalid={failed ? "true" : undefined} aria-describedby="login-failed" />
        <button class="primary" aria-disabled={busy}>{busy ? "Logging in" : "Log in"}</button>
        <p id="login-failed" class="login-failed" role="alert">{failed}</p>
      </form>
    </section>
  );
}

export function Who() {
  const s = session.value;
  if (locked.value || !s || s.ends_in_seconds === null) return null;
  return <button type="button" class="small" title={`Logged in as ${s.name}, ${s.role}`} onClick={() => logout().catch(() => {})}>Log out</button>;
}
