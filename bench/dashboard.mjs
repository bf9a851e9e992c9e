// SPDX-License-Identifier: MIT
// Measures the cost of the dashboard in a browser, with 30 stages: the time to the first paint, the
// frame time while ticks arrive at 4 Hz, and the growth of the heap. Figures depend on the machine, so
// this is not a test.
//
//   node bench/dashboard.mjs BROWSER [MINUTES=0] [STAGES=30]
//
// MINUTES is the real time at 4 Hz over which the growth of the heap is measured (the target is for
// 10). With 0, only frames are measured, for 20 s. Needs `npm ci` in tests/ui.

import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const top = join(dirname(fileURLToPath(import.meta.url)), "..");
const require = createRequire(join(top, "tests/ui/dashboard.mjs"));
const playwright = await import(pathToFileURL(require.resolve("playwright-core")).href);
const { chromium } = playwright.default ?? playwright;
const { serve, World } = await import(pathToFileURL(join(top, "tests/ui/made_up_server.mjs")).href);

const [executablePath, minutes = "0", stages = "30"] = process.argv.slice(2);
if (!executablePath) {
  console.error("usage: node bench/dashboard.mjs BROWSER [MINUTES=0] [STAGES=30]");
  process.exit(2);
}
const server = await serve(new World({ dist: join(top, "admin/ui/dist"), stages: Number(stages) }));
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const base = `http://127.0.0.1:${server.port}/`;
const at = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))];

// First paint: the median of 9 visits, each with an empty cache.
const paints = [];
for (let i = 0; i < 9; i++) {
  const context = await browser.newContext();
  const page = await context.newPage();
  await page.goto(base);
  await page.waitForFunction(() => performance.getEntriesByName("first-contentful-paint").length > 0);
  paints.push(await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0].startTime));
  await context.close();
}
paints.sort((a, b) => a - b);
console.log(`browser           ${browser.version()}, ${stages} stages`);
console.log(`first paint       ${at(paints, 0.5).toFixed(0)} ms (${paints[0].toFixed(0)} to ${paints.at(-1).toFixed(0)})`);

const page = await browser.newPage();
await page.goto(base);
await page.waitForFunction(() => document.querySelector(".numbers"));
const cdp = await page.context().newCDPSession(page);
await cdp.send("HeapProfiler.enable");
const heap = async () => {
  for (let i = 0; i < 2; i++) await cdp.send("HeapProfiler.collectGarbage");
  return { heap: (await cdp.send("Runtime.getHeapUsage")).usedSize, ...(await cdp.send("Memory.getDOMCounters")) };
};
const ticks = setInterval(() => server.world.tick(), 250);
const ms = Number(minutes) > 0 ? Number(minutes) * 60000 : 20000;
const before = await heap();
// The time between two frames, and the duration of tasks longer than a frame.
const frames = await page.evaluate((length) => new Promise((done) => {
  const out = [], long = [];
  new PerformanceObserver((list) => list.getEntries().forEach((e) => long.push(e.duration))).observe({ entryTypes: ["longtask"] });
  const begun = performance.now();
  let last = begun;
  const step = (now) => {
    out.push(now - last);
    last = now;
    if (now - begun < length) requestAnimationFrame(step);
    else done({ out, long });
  };
  requestAnimationFrame(step);
}), ms);
clearInterval(ticks);
const after = await heap();
const sorted = frames.out.slice(1).sort((a, b) => a - b);
console.log(`frames            p50 ${at(sorted, 0.5).toFixed(1)} ms, p99 ${at(sorted, 0.99).toFixed(1)} ms, longest ${sorted.at(-1).toFixed(1)} ms (${sorted.length} in ${ms / 1000} s)`);
console.log(`tasks over 50 ms  ${frames.long.length}${frames.long.length ? `, longest ${Math.max(...frames.long).toFixed(0)} ms` : ""}`);
console.log(`heap              ${(before.heap / 1e6).toFixed(1)} MB, after ${ms / 1000} s ${(after.heap / 1e6).toFixed(1)} MB (${((after.heap - before.heap) / 1e6).toFixed(2)} MB more)`);
console.log(`nodes, listeners  ${before.nodes}, ${before.jsEventListeners}; after ${after.nodes}, ${after.jsEventListeners}`);
await browser.close();
await server.close();
