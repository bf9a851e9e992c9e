// SPDX-License-Identifier: MIT
// Login and logout, for servers that require a token. The token is sent once and not stored in the
// browser; the server answers with a cookie that scripts cannot read.

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
      <p class="hint">This server requires a token. Its configuration names the file with the token under <code>admin: tokens:</code></p>
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
