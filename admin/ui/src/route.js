/* SPDX-License-Identifier: MIT */
// The current view as a link: #/PAGE[/NAME]?key=value. The link contains range, stage, filters and
// theme, so a view can be shared.

import { computed, signal } from "@preact/signals";

export const PAGES = ["overview", "stage", "requests", "profile", "timeline", "config", "compare"];

function parse(hash) {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page, name] = path.split("/").map(decode);
  return { page: PAGES.includes(page) ? page : "overview", name: name || "",
    params: Object.fromEntries(new URLSearchParams(query)) };
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const SYSTEM = "system";
export const THEMES = [SYSTEM, "light", "dark"];

function kept() {
  try {
    return localStorage.getItem("weir-theme");
  } catch {
    return null; // storage may be disabled
  }
}

export const route = signal(parse(location.hash));
const chosenTheme = signal(kept() || SYSTEM);
export const theme = computed(() => {
  const t = route.value.params.theme || chosenTheme.value;
  return THEMES.includes(t) ? t : SYSTEM;
});

addEventListener("hashchange", () => { route.value = parse(location.hash); });

// A link to a page. If the address contains a theme, so does the link. A parameter that is null or
// "" is left out.
export function href(page, name = "", params = {}) {
  const all = { ...params, theme: route.value.params.theme };
  const query = new URLSearchParams(Object.entries(all).filter(([, v]) => v !== null && v !== undefined && v !== ""));
  const text = query.toString();
  return `#/${page}${name ? `/${encodeURIComponent(name)}` : ""}${text ? `?${text}` : ""}`;
}

// The same page with other parameters.
export function withParams(changes) {
  const { page, name, params } = route.value;
  return href(page, name, { ...params, ...changes });
}

// Change parameters in place, without an entry in the browser's history.
export function setParams(changes) {
  history.replaceState(null, "", withParams(changes));
  route.value = parse(location.hash);
}

export function setTheme(name) {
  chosenTheme.value = name;
  try {
    localStorage.setItem("weir-theme", name);
  } catch {
    // the storage may be disabled; the theme then applies to this page only
  }
  const { page, name: stage, params } = route.value;
  const { theme: _, ...rest } = params;
  const text = new URLSearchParams(name === SYSTEM ? rest : { ...rest, theme: name }).toString();
  history.replaceState(null, "", `#/${page}${stage ? `/${encodeURIComponent(stage)}` : ""}${text ? `?${text}` : ""}`);
  route.value = parse(location.hash);
}

// ---- time ranges ----

export const RANGES = { "5m": 300, "15m": 900, "1h": 3600, "6h": 21600 };
const FINE_S = 900; // age of the oldest one-second samples in the history

// Returns { from, to, live, step, key }, with times in Unix seconds. A range with `live` ends now.
export function rangeOf(params, nowUnix, prefix = "") {
  const from = Number(params[`${prefix}from`]), to = Number(params[`${prefix}to`]);
  if (from > 0 && to > from) {
    const step = nowUnix - from <= FINE_S ? 1 : 10;
    return { from, to, live: false, step, key: `${from}-${to}`, seconds: to - from };
  }
  const key = Object.hasOwn(RANGES, params[`${prefix}range`]) ? params[`${prefix}range`] : "15m";
  const length = RANGES[key];
  return { from: nowUnix - length, to: nowUnix, live: true, step: length <= FINE_S ? 1 : 10, key, seconds: length };
}
