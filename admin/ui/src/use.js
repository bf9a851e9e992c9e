/* SPDX-License-Identifier: MIT */
// Hooks: the samples of a range, an answer that is read repeatedly, the width of an element.

import { useEffect, useRef, useState } from "preact/hooks";
import { get, isAbsent } from "./api.js";
import { configs, epoch, frame, has, routes, serverNow } from "./live.js";
import { rangeOf } from "./route.js";
import { cut, fromHistory, joined } from "./series.js";

const READ_EVERY_S = 2;

// Returns { frame | null, range, reach }: the samples of the range in the parameters. A live range
// grows. `reach` is the source of the samples: "server", or "page" if the server has no history.
export function useFrame(stage, params, prefix = "") {
  const [got, setGot] = useState(null);
  const stored = has("GET", "/api/v1/history");
  const range = rangeOf(params, serverNow(), prefix);
  const era = epoch.value;
  useEffect(() => {
    setGot(null);
    if (!stored || !stage) return undefined;
    return readOn(stage, range, setGot);
  }, [stage, range.key, stored, era]);
  if (stored) return { frame: got, range: got ? fitted(range, got) : range, reach: "server" };
  const rows = routes.value || frame.value.version ? cut(frame.value.rows, range.from, range.to) : null;
  return { frame: rows, range: rows ? fitted(range, rows) : range, reach: "page" };
}

// Read the range, then new samples, until the returned function is called.
function readOn(stage, range, setGot) {
  let gone = false, timer = 0, kept = null;
  const read = async () => {
    const last = kept?.at.at(-1);
    const from = range.live ? (last ? last + range.step / 2 : -range.seconds) : range.from;
    const to = range.live ? "" : `&to=${range.to}`;
    try {
      const answer = fromHistory(await get(
        `/api/v1/history?from=${from}${to}&step=${range.step}s&stage=${encodeURIComponent(stage)}`));
      if (gone) return;
      const all = kept ? joined(kept, answer) : answer;
      const end = all.at.at(-1);
      kept = range.live && end ? cut(all, end - range.seconds, end) : all;
      setGot(kept);
    } catch (e) {
      console.debug(e.message);
    }
    if (range.live && !gone) timer = setTimeout(read, 1000 * Math.max(READ_EVERY_S, range.step));
  };
  read();
  return () => {
    gone = true;
    clearTimeout(timer);
  };
}

// The first row with a value for a stage. The history of a server may begin with a gap, since it
// covers the time before the server started.
export function firstKnown(rows) {
  const counts = Object.values(rows.stages).map((s) => s.in).filter(Boolean);
  const i = rows.at.findIndex((_, n) => counts.some((c) => c[n] !== null && c[n] !== undefined));
  return Math.max(0, i);
}

// The shown part of a live range: it ends at the newest sample and begins at the first known one,
// but at least a minute before its end.
function fitted(range, rows) {
  if (!range.live || !rows.at.length) return range;
  const to = rows.at.at(-1);
  const from = Math.min(to - 60, Math.max(to - range.seconds, rows.at[firstKnown(rows)]));
  return { ...range, from, to };
}

// Returns { data, absent, error }: the answer of `path`, read again every `everyS` seconds (0: read
// once). `route` is the pattern of the path in the server's list. Pass it if a server may lack the
// route.
export function useAnswer(path, everyS = 0, route = "") {
  const [answer, setAnswer] = useState({});
  const [turn, setTurn] = useState(0);
  const era = `${epoch.value} ${configs.value}`;
  const known = !route || routes.value !== null, lacks = Boolean(route) && known && !has("GET", route);
  useEffect(() => {
    if (!path || !known || lacks) return undefined;
    let gone = false, timer = 0;
    const read = async () => {
      let next;
      try {
        next = { data: await get(path) };
      } catch (e) {
        next = isAbsent(e) ? { absent: true } : { error: e.message };
      }
      if (gone) return;
      setAnswer((was) => (next.error && was.data ? { data: was.data, error: next.error } : next));
      if (everyS && !next.absent) timer = setTimeout(read, everyS * 1000);
    };
    read();
    return () => {
      gone = true;
      clearTimeout(timer);
    };
  }, [path, everyS, era, turn, known, lacks]);
  return { ...(lacks ? { absent: true } : answer), again: () => setTurn((n) => n + 1) };
}

// [ref, width]: the width of the element in CSS pixels, 0 before it is known.
export function useWidth() {
  const ref = useRef(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(() => setWidth(ref.current ? ref.current.clientWidth : 0));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, []);
  return [ref, width];
}
