// SPDX-License-Identifier: MIT
// The frame of every page: name, pages, state of the connection and theme, followed by the page
// that the address names.

import { effect } from "@preact/signals";
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import "uplot/dist/uPlot.min.css";
import "./app.css";
import { locked } from "./api.js";
import { span } from "./format.js";
import { graph, isStale, link, mayAct, mode, now, serverNow, start } from "./live.js";
import { Login, Who } from "./login.jsx";
import { Compare } from "./pages/compare.jsx";
import { Config } from "./pages/config.jsx";
import { currentVerdict, Overview } from "./pages/overview.jsx";
import { Profile } from "./pages/profile.jsx";
import { Requests } from "./pages/requests.jsx";
import { Stage } from "./pages/stage.jsx";
import { Timeline } from "./pages/timeline.jsx";
import { MODES } from "./overload.jsx";
import { Mark } from "./parts.jsx";
import { href, route, setTheme, theme, THEMES } from "./route.js";

const PAGE = {
  overview: ["Overview", Overview], stage: ["Stages", Stage], requests: ["Requests", Requests],
  profile: ["Profile", Profile], timeline: ["Timeline", Timeline], config: ["Config", Config], compare: ["Compare", Compare],
};

function App() {
  const { page, name } = route.value;
  const main = useRef(null), first = useRef(true);
  const Page = PAGE[page][1];
  useEffect(() => {
    if (first.current) first.current = false;
    else main.current.focus({ preventScroll: true });
    scrollTo(0, 0);
  }, [page, name]);
  return (
    <>
      <a class="skip" href="#main" onClick={(e) => { e.preventDefault(); main.current.focus(); }}>Skip to the content</a>
      <Header page={page} />
      <main id="main" ref={main} tabIndex={-1} class={isStale.value ? "stale" : ""}>
        {!locked.value && page !== "overview" && isStale.value && <StaleNote />}
        {locked.value ? <Login /> : <Page />}
      </main>
      <footer class="foot">
        <span>weir{graph.value ? ` · ${graph.value.name} · up ${span(graph.value.uptime_seconds + Math.max(0, serverNow() - graph.value.time))}` : ""}</span>
        <nav aria-label="Elsewhere"><a href="/metrics">Metrics</a><a href="/api/v1">API</a><a href="/readyz">Readiness</a><a href="/LICENSES.txt">Licences</a></nav>
      </footer>
    </>
  );
}

function Header({ page }) {
  return (
    <header class="top">
      <a class="brand" href={href("overview")}><img src="/icon.svg" width="28" height="28" alt="" /><span class="brand-weir">weir</span>
        <span class="brand-name">{graph.value?.name || ""}</span></a>
      <nav class="pages" aria-label="Pages">
        {Object.entries(PAGE).map(([key, [label]]) => <a key={key} href={href(key)} aria-current={key === page ? "page" : undefined}>{label}</a>)}
      </nav>
      <div class="status">
        {mode.value !== "enforce" && MODES[mode.value] && <a class="pill mode" href={href("config")} title={MODES[mode.value]}>overload: {mode.value}</a>}
        {!mayAct.value && <p class="pill quiet">viewer</p>}
        {!locked.value && <LinkPill />}
        <Who />
        <ThemeButton />
      </div>
    </header>
  );
}

function LinkPill() {
  const { state, silentS, never, streaming } = link.value;
  const text = state === "stale" ? (never ? "no answer" : `stale for ${span(silentS)}`) : state === "live" ? "live" : "connecting";
  const how = state === "live" ? (streaming ? "The server sends updates" : "Polling the server once a second") : "";
  return <p class="pill link" data-state={state} title={how} role="status">{text}</p>;
}

const THEME_WORDS = { system: "Theme: system", light: "Theme: light", dark: "Theme: dark" };
const THEME_ICONS = {
  system: "M12 3a9 9 0 1 1 0 18a9 9 0 1 1 0-18z",
  light: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M5 19l2-2M17 7l2-2",
  dark: "M20 14A8.5 8.5 0 0 1 10 4a8.5 8.5 0 1 0 10 10z",
};

function ThemeButton() {
  const t = theme.value;
  const next = THEMES[(THEMES.indexOf(t) + 1) % THEMES.length];
  return (
    <button type="button" class="icon-button" data-theme-now={t} aria-label={`${THEME_WORDS[t]}. Change.`} title={THEME_WORDS[t]} onClick={() => setTheme(next)}>
      <svg viewBox="0 0 24 24" width="20" height="20" aria-hidden="true"><path d={THEME_ICONS[t]} />{t === "system" && <path class="half" d="M12 3a9 9 0 0 0 0 18z" />}</svg>
    </button>
  );
}

function StaleNote() {
  return <div class="stale-note" role="status"><Mark kind="wait" size={20} /><p>{currentVerdict().text}</p></div>;
}

effect(() => {
  const t = theme.value;
  if (t === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
});
effect(() => {
  const { page, name } = route.value;
  const where = page === "overview" ? "" : `${name || PAGE[page][0]} · `;
  document.title = `${where}${graph.value?.name || ""} · weir`.replace(/^ · /, "");
});
effect(() => { document.body.classList.toggle("waiting", !now.value && !locked.value); });

render(<App />, document.getElementById("app"));
start();
