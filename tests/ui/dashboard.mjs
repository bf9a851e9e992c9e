// SPDX-License-Identifier: MIT
// The dashboard in a real browser: dashboard.mjs BROWSER WEIR TOP [PATTERN]
//
// The pages are used as people use them: with the keyboard, on a phone, in the dark theme, with
// hostile names, and while the server goes away. Most tests use a fake server (made_up_server.mjs),
// whose state is fully known; the last ones use weir itself. Every wait is for a condition and fails
// after PATIENCE ms.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import http from "node:http";
import { createRequire } from "node:module";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";
import { serve, World } from "./made_up_server.mjs";

const [executablePath, weir, top, pattern = ""] = process.argv.slice(2);
const dist = join(top, "admin/ui/dist");
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const PATIENCE = 30000;

const PAGES = ["#/overview", "#/stage/work", "#/requests", "#/profile", "#/timeline", "#/config", "#/compare"];
const EVIL = "<img src=x onerror=\"window.pwned=1\"><script>window.pwned=1</script>\"'>";

const tests = [];
const test = (name, f, options = {}) => tests.push({ name, f, ...options }); // options: world, noise

// ---- the tests ----

test("every page is drawn, in both themes, without a word on the console", async ({ open }) => {
  for (const scheme of ["light", "dark"]) {
    const page = await open({ scheme });
    for (const hash of PAGES) await visit(page, hash);
  }
});

test("the theme can be chosen, stays, and is part of the link", async ({ open, base }) => {
  const page = await open({});
  await page.getByRole("button", { name: /^Theme/ }).click();
  await page.getByRole("button", { name: /^Theme/ }).click();
  await page.waitForFunction(() => document.documentElement.dataset.theme === "dark" && location.hash.includes("theme=dark"));
  const dark = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const other = await open({});
  await other.goto(`${base}/#/timeline?theme=light`);
  await other.waitForFunction(() => document.documentElement.dataset.theme === "light");
  assert.notEqual(await other.evaluate(() => getComputedStyle(document.body).backgroundColor), dark);
});

test("axe finds nothing, in both themes", async ({ open }) => {
  for (const [scheme, width] of [["light"], ["dark"], ["light", 360]]) {
    const page = await open({ scheme, width, calm: true });
    for (const hash of PAGES) {
      await visit(page, hash);
      await axeFindsNothing(page, `${hash} ${scheme} ${width || ""}`);
    }
  }
});

test("360 pixels are enough", async ({ open }) => {
  const page = await open({ width: 360 });
  for (const hash of PAGES) {
    await visit(page, hash);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= 360, `${hash} is ${wide} wide`);
    // Nothing reaches into the margin, except what can be scrolled to.
    const outside = await page.evaluate(() => {
      const main = document.querySelector("main"), end = main.getBoundingClientRect().right - parseFloat(getComputedStyle(main).paddingRight);
      return [...main.querySelectorAll("*")].filter((e) => e.getBoundingClientRect().right > end + 1 && !e.closest(".table-scroll, .yaml, svg, .plot, .sr-only"))
        .map((e) => `${e.tagName}.${e.className} ${e.getBoundingClientRect().right}`);
    });
    assert.deepEqual(outside, [], hash);
  }
});

test("names that are markup are text", async ({ open }) => {
  const page = await open({ hash: "#/overview" });
  await page.waitForFunction((evil) => document.body.textContent.includes(evil), EVIL);
  for (const hash of [...PAGES.filter((h) => h !== "#/stage/work"), `#/stage/${encodeURIComponent(`work${EVIL}`)}`]) {
    await visit(page, hash);
    await page.waitForFunction((evil) => document.querySelector("main").textContent.includes(evil), EVIL);
    for (const plot of await page.locator(".plot canvas").all()) await plot.hover({ force: true }).catch(() => {});
    assert.deepEqual(await page.evaluate(() => [window.pwned, document.querySelectorAll("script").length, document.querySelectorAll("main img").length]), [undefined, 1, 0], hash);
  }
}, { world: { names: { work: `work${EVIL}`, backend: `back${EVIL}` }, classes: [`vip${EVIL}`, `bulk${EVIL}`], evil: EVIL } });

test("a page that is opened late shows what was before", async ({ open }) => {
  const page = await open({});
  // A page that is a few seconds old cannot have collected five minutes of points itself.
  await page.waitForFunction(() => (document.querySelector(".spark-line")?.getAttribute("d").match(/L/g) || []).length >= 280);
  await visit(page, "#/stage/work?range=1h");
  await page.waitForFunction(() => document.querySelectorAll(".plot canvas").length >= 6);
  assert.ok(await page.evaluate(() => performance.now() < 280000));
});

test("a curve of which nothing is known is not drawn", async ({ open }) => {
  const page = await open({});
  await page.locator(".big .spark-line").nth(2).waitFor({ state: "attached" }); // requests, shed, waiting; the wait is missing
  assert.equal(await page.locator(".big .spark-line").count(), 3); // `open` also records messages on the console
}, { world: { idle: true } });

test("a profile is that of its window, and its rows add up", async ({ open }) => {
  const page = await open({ hash: "#/profile?window=all" });
  // The numbers of the column in the rows of a stage; the last one is the sum.
  const column = (title) => page.evaluate((t) => {
    const table = document.querySelector(".profile"), at = [...table.querySelectorAll("thead th")].findIndex((th) => th.textContent === t);
    const body = [...table.querySelectorAll("tbody")].find((b) => b.textContent.startsWith("work"));
    return [...body.querySelectorAll("tr")].map((tr) => Number(tr.querySelectorAll("td")[at - 1].textContent.replace(/[^0-9.]/g, "")));
  }, title);
  await page.getByRole("heading", { name: "Stages by thread" }).waitFor();
  assert.equal(await page.getByText(/Since these stages were started/).count(), 2);
  const whole = await column("started");
  assert.equal(whole.length, 3);
  assert.equal(whole[0] + whole[1], whole[2]);
  assert.ok(Math.abs(whole[0] / whole[2] - 0.6) < 0.01, `${whole}`);
  assert.ok((await column("restarted"))[2] > whole[2] / 11);
  await page.getByRole("link", { name: "10 s" }).click();
  await page.getByText(/In the last \d+ s/).first().waitFor();
  const last = await column("started"), queue = await column("queue");
  assert.ok(last[2] < whole[2] / 10, `${last} of ${whole}`);
  assert.ok(Math.abs(queue[0] + queue[1] - queue[2]) < 0.11, `${queue}`);
  await page.getByText("refused").first().waitFor();
});

test("a chart tells its values under the pointer and to the keyboard", async ({ open }) => {
  const page = await open({ hash: "#/stage/work" });
  const plot = page.locator(".plot").first();
  await plot.locator("canvas").waitFor();
  await plot.hover();
  await page.waitForFunction(() => !document.querySelector(".tip").hidden && /in/.test(document.querySelector(".tip").textContent));
  await page.mouse.move(0, 0);
  await plot.focus();
  await page.keyboard.press("ArrowLeft");
  await page.waitForFunction(() => document.querySelector(".chart .when"));
  const before = await page.locator(".chart .when").first().textContent();
  await page.keyboard.press("PageUp");
  await page.waitForFunction((was) => document.querySelector(".chart .when")?.textContent !== was, before);
});

test("a knob is turned and turned back with the keyboard alone", async ({ open, world }) => {
  const page = await open({});
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
  await page.keyboard.press("Enter");
  await tabTo(page, () => document.activeElement.getAttribute("data-stage") === "work");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.getElementById("knob-threads.max"));
  await tabTo(page, () => document.activeElement.id === "knob-threads.max");
  assert.ok(await page.evaluate(() => parseFloat(getComputedStyle(document.activeElement).outlineWidth) >= 2), "the focus is seen");
  await page.keyboard.press("Control+A");
  await page.keyboard.type("many");
  await page.keyboard.press("Enter");
  await page.getByText("'many' is not a whole number").waitFor();
  await page.keyboard.press("Control+A");
  await page.keyboard.type("8");
  await page.keyboard.press("Enter");
  await page.getByText("set to 8").waitFor();
  assert.deepEqual(world.calls.at(-1), { method: "PUT", path: "/api/v1/stages/work/knobs/threads.max", body: { value: "8" } });
  await page.waitForFunction(() => /configured 16.*overridden 8.*effective 8/.test(document.querySelector(".knob.over .layers")?.textContent || ""));
  await tabTo(page, () => document.activeElement.textContent === "Undo the last change", "Shift+Tab");
  await page.keyboard.press("Enter");
  await page.getByText("The last change was undone.").waitFor();
  await page.waitForFunction(() => !document.querySelector(".knob.over"));
}, { noise: /status of 422/ });

test("a knob can be turned for a time", async ({ open, world }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.getByLabel("How long to override threads.max").selectOption("10m");
  await page.getByLabel("threads.max", { exact: true }).fill("4");
  await page.getByRole("button", { name: "Set threads.max" }).click();
  await page.getByText("set to 4 for 10m").waitFor();
  assert.deepEqual(world.calls.at(-1).body, { value: "4", for: "10m" });
  await page.getByRole("button", { name: "Unset threads.max" }).click();
  await page.getByText("back to the configured value").waitFor();
});

test("a stage is paused after asking twice, and the timeline says so", async ({ open, world }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.getByRole("button", { name: "Pause" }).click();
  assert.equal(world.calls.length, 0);
  await page.getByRole("button", { name: "Pause? Press again" }).click();
  await page.getByText("pause: done").waitFor();
  await visit(page, "#/timeline?action=pause");
  await page.locator(".feed .act").waitFor();
  assert.equal(await page.locator(".feed > li").count(), 1);
});

test("what limits the server is told in the server's words", async ({ open, world }) => {
  const page = await open({});
  await page.waitForFunction(() => /work limits the server: its 2 threads are 97 % used/.test(document.querySelector(".verdict")?.textContent));
  // The alert about the same bottleneck is not shown again; another alert is.
  await until(() => world.streams.size > 0, "the page listens");
  world.send("alert", world.alert(7, "bottleneck_chronic", "warn"));
  world.send("alert", world.alert(8, "history_file", "warn"));
  await page.locator(".alerts li").waitFor();
  assert.equal(await page.locator(".alerts li").count(), 1);
}, { world: { limits: true } });

test("what is turned away in front of the graph is the headline, a number and in the table", async ({ open }) => {
  const page = await open({});
  await page.waitForFunction(() => /^Turning away: web refuses clients before they reach the graph\.In front of the graph, web turns clients away: connections refused for exceeding max_per_address/.test(document.querySelector(".verdict").textContent.trim()));
  assert.equal(await page.locator(".verdict").getAttribute("data-level"), "bad");
  const shed = page.locator(".big", { hasText: "Shed" });
  assert.match(await shed.textContent(), /turned away/);
  assert.match(await shed.getAttribute("class"), /alarm/);
  assert.match(await page.locator("tr", { hasText: "http.server" }).textContent(), /turned away/);
}, { world: { away: 170 } });

test("trouble of a stage is the headline, in the graph, in the table and on its page", async ({ open }) => {
  const page = await open({});
  await page.waitForFunction(() => /^Not ready: stage work is in trouble\.Its handler has held/.test(document.querySelector(".verdict").textContent.trim()));
  assert.match(await page.locator("[data-stage=work]").getAttribute("class"), /bad/);
  assert.match(await page.locator("[data-stage=work]").textContent(), /in trouble/);
  assert.match(await page.locator("tr", { hasText: "burn" }).textContent(), /connections on it wait/);
  await visit(page, "#/stage/work");
  await page.locator(".alerts li", { hasText: "connections on it wait" }).waitFor();
}, { world: { stage: { trouble: "its handler has held I/O thread 'web/io1' for 4.2 s: connections on it wait" } } });

test("events that a stage holds are counted where its queue is, and fill it", async ({ open }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.locator(".facts", { hasText: "860 held" }).waitFor();
  await visit(page, "#/overview");
  await page.waitForFunction(() => /40 of 1,024, 860 held/.test(document.querySelector('.card[aria-labelledby=stages-title] table')?.textContent));
  assert.match(await page.locator("[data-stage=work] title").textContent(), /860 held/);
  assert.match(await page.locator("[data-stage=work]").getAttribute("class"), /warn/); // 900 of 1,024
}, { world: { stage: { held: 860, in_flight: 902 } } });

test("children are shown of a stage that makes any: on its page, in the profile, in waterfalls", async ({ open }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.locator(".facts", { hasText: "Awaiting1240 children in flight" }).waitFor();
  await visit(page, "#/stage/backend");
  await page.locator(".facts", { hasText: "Queue" }).waitFor();
  assert.equal(await page.locator(".facts", { hasText: "Awaiting" }).count(), 0);
  await visit(page, "#/profile?window=all");
  await page.locator(".profile th", { hasText: "made" }).waitFor();
  const cells = await page.locator(".profile").first().locator("tbody", { hasText: "work" }).locator("tr").evaluateAll((rows) => rows.map((r) => Number(r.lastElementChild.textContent.replace(/ M/, "").replaceAll(",", ""))));
  assert.ok(cells[0] > 0 && Math.abs(cells[0] + cells[1] - cells[2]) < cells[2] / 100, cells.join());
  for (const scheme of ["light", "dark"]) {
    const other = await open({ scheme, calm: true, width: scheme === "dark" ? 360 : 1280, hash: "#/requests" });
    await other.locator(".requests summary").first().click();
    assert.match(await other.locator(".requests li").first().locator("svg").getAttribute("aria-label"), /children 246 ms/);
    assert.equal(await other.locator(".requests .bar-children").count(), 1);
    assert.deepEqual(await other.locator(".requests tbody th:has-text('child ')").allTextContents(), ["child 16, answer", "child 15, answer"]);
    assert.ok(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await axeFindsNothing(other, scheme);
  }
}, { world: { makes: true, stage: { awaiting: 12, in_flight: 54, children: { limit: 256, spawned_total: 345, joined_total: 300, orphaned_total: 5, cancelled_total: 0, refused_total: 0, in_flight: 40 } } } });

test("a stage without children shows none", async ({ open }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.locator(".facts", { hasText: "Queue" }).waitFor();
  assert.equal(await page.locator(".facts", { hasText: "Awaiting" }).count(), 0);
  await visit(page, "#/profile?window=all");
  await page.locator(".profile").first().waitFor();
  assert.equal(await page.locator(".profile th", { hasText: "made" }).count(), 0);
  await visit(page, "#/requests");
  await page.locator(".requests summary").first().click();
  assert.equal(await page.locator(".requests th", { hasText: "children" }).count(), 0);
  assert.equal(await page.locator(".key-children").count(), 0);
});

const WIDTH = { now: 64, min: 1, max: 1024, in_work: 61, refused_total: 0, why: "18 ms each, 312/s; widening stopped helping at 64" };

test("the width of a stage that holds events is in the graph, in the table and on its page", async ({ open, world }) => {
  const width = (id, ago, from, to) => ({ ...world.decisions()[0], id, time: world.now() - ago, stage: "work", action: "width", from, to,
    rule: `${from} events at once take 18 ms each: more are tried`, limit: "", inputs: "" });
  const changes = [width(3, 100, 128, 64), width(2, 200, 32, 128), width(1, 300, 4, 32)];
  world.decisions = () => changes;
  const page = await open({});
  await page.waitForFunction(() => /61 of 64 under way, 18 ms each, 312\/s; widening stopped helping at 64/.test(document.querySelector('.card[aria-labelledby=stages-title] table')?.textContent));
  assert.match(await page.locator("[data-stage=work] title").textContent(), /61 of 64 under way/);
  assert.equal(await page.locator("[data-stage=work] .ring-text").textContent(), "64");
  assert.equal(await page.locator("[data-stage=backend] .ring-text").textContent(), "4"); // threads
  assert.match(await page.locator(".feed li").first().textContent(), /width: 128 → 64 at once/);
  for (const scheme of ["light", "dark"]) {
    const other = await open({ scheme, calm: true, width: scheme === "dark" ? 360 : 1280, hash: "#/stage/work" });
    await other.locator(".facts", { hasText: "Under way61 of 6418 ms each, 312/s; widening stopped helping at 64; bounds 1–1,024" }).waitFor();
    await other.locator(".formula", { hasText: "64at once÷" }).waitFor();
    await other.locator(".formula", { hasText: "with 61 under way. Its policy may widen it to 1,024." }).waitFor();
    // The chart follows the decisions, from 4 to 128 and back to 64.
    await other.locator(".plot[aria-label*='Chart of Width. width: now 64, at most 128']").focus();
    await other.keyboard.press("Home");
    await other.locator(".chart", { hasText: /^Width.*width 4at / }).waitFor();
    assert.ok(await other.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await axeFindsNothing(other, scheme);
  }
}, { world: { stage: { held: 61, width: WIDTH } } });

test("a width at its maximum, and what the other side refuses, are told", async ({ open, world }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.locator(".formula", { hasText: "The width is at its maximum." }).waitFor();
  await page.locator(".facts", { hasText: "Under way61 of 64bounds 1–64" }).waitFor(); // a policy that says nothing
  world.options.stage.width = { ...world.options.stage.width, refused_total: 1000 };
  await page.locator(".facts", { hasText: /bounds 1–64; [\d,]+\/s refused by the other side/ }).waitFor();
}, { world: { stage: { width: { ...WIDTH, max: 64, why: "" } } } });

test("what clients get: the response time first, and a row with a chart for each class", async ({ open }) => {
  const page = await open({});
  const card = page.locator(".card:has(#classes-title)");
  await card.waitFor();
  const cells = async (row) => (await card.locator("tbody tr").nth(row).locator("td").allTextContents()).map((s) => s.trim());
  await until(async () => (await cells(0))[5] === "20 ms · 40 ms" && (await cells(1))[5] === "40 ms · 80 ms", "the times of both classes");
  assert.deepEqual(await card.locator("tbody th").allTextContents(), ["vip", "bulk"]);
  const [offered, , good, refused, failed] = (await cells(1)).map(parseFloat);
  assert.ok(Math.abs(good / offered - 0.9) < 0.03 && Math.abs(refused - failed) <= 1 && refused > 0, `${offered} ${good} ${refused} ${failed}`);
  assert.equal(await page.locator(".big h2").first().textContent(), "Response, p99");
  await until(async () => await page.locator(".big-value").first().textContent() === "80ms", "the slowest of all classes");
  await until(async () => await card.locator(".spark-line").count() === 4, "two charts for each class");
  await until(async () => await card.locator(".charts .plot canvas").count() === 2, "charts of good and of refused answers");
  const charts = await card.locator(".plot").evaluateAll((list) => list.map((x) => x.getAttribute("aria-label")));
  assert.match(charts[0], /Good answers, by class\. vip.*bulk/);
  assert.match(charts[1], /Refused answers, by class\. vip.*bulk/);
  await page.evaluate(() => { location.hash = "#/stage/web"; }); // the source, which has no live knobs
  await until(async () => (await page.locator(".plot").evaluateAll((list) => list.map((x) => x.getAttribute("aria-label")))).filter((l) => /answers, by class/.test(l)).length === 2, "the same on its page");
  await visit(page, "#/stage/work");
  await page.locator(".plot").first().waitFor();
  assert.equal(await page.locator('.plot[aria-label*="answers, by class"]').count(), 0);
});

test("the headline is one line, and no number of a tile is in it or below it", async ({ open, world }) => {
  for (const [text, options] of [[/^Overloaded: .* sheds 55 % of its events \(priority\)\.$/, {}],
    [/^Turning away: /, { away: 170 }], [/^Not ready: /, { stage: { trouble: "its handler has held a thread" } }],
    [/^Limited: |^Overloaded: /, { limits: true }]]) {
    Object.assign(world.options, { away: undefined, stage: undefined, limits: undefined, ...options });
    const page = await open({});
    await page.waitForFunction((re) => new RegExp(re).test(document.querySelector(".verdict h1").textContent), text.source);
    const { head, details, height, line, tiles } = await page.evaluate(() => {
      const h1 = document.querySelector(".verdict h1");
      return { head: h1.textContent, details: document.querySelector(".verdict .details")?.textContent || "", height: h1.getBoundingClientRect().height,
        line: parseFloat(getComputedStyle(h1).lineHeight), tiles: [...document.querySelectorAll(".big-value")].map((x) => x.textContent) };
    });
    assert.ok(head.length <= 90, `${head.length}: ${head}`);
    assert.ok(height < 1.5 * line, `${head} takes ${height / line} lines`);
    for (const value of tiles.filter((t) => /^[\d,.]+ ?\/s$/.test(t))) assert.ok(!`${head} ${details}`.includes(value), `${value} is in ${head} ${details}`);
    await page.close();
  }
}, { world: { names: { backend: "a-stage-with-a-name-of-forty-characters-x" } } });

test("status codes, connections and the process are on the overview", async ({ open, world }) => {
  const page = await open({});
  const card = page.locator(".resources-card");
  await card.waitFor();
  const said = async () => (await card.locator(".resource").allInnerTexts()).map((t) => t.replace(/\s+/g, " "));
  await until(async () => /^Answers by status 2xx (799|80[01])\/s 3xx 0\/s 4xx (49|5[01])\/s 5xx 1(49|5[01])\/s$/.test((await said())[0]), "the rates of status codes");
  assert.match((await said())[1], /^Connections 37 [\d.]+\/s accepted$/);
  assert.deepEqual((await said()).slice(2), ["CPU 25 % 1.0 of 4 cores", "Memory 41 MB 21 threads", "Descriptors 60 of 1,024"]);
  assert.equal(await card.locator(".alarm").count(), 0);
  const widths = await card.locator(".codes rect").evaluateAll((list) => list.slice(1).map((r) => Math.round(r.getAttribute("width"))));
  assert.deepEqual(widths, [80, 0, 5, 15]);
  world.options.files = 1000;
  await card.locator(".alarm", { hasText: "Descriptors" }).waitFor();
});

test("the graph has at most a third of the screen, whatever its depth and width, and can be read", async ({ open, world }) => {
  for (const [options, width, height] of [[{}, 1280, 900], [{ chain: 3 }, 1280, 900], [{ chain: 12 }, 1280, 900], [{ chain: 12 }, 360, 800], [{ stages: 30 }, 1280, 900], [{ pool: "both", chain: 6 }, 1280, 720], [{ cores: 4 }, 900, 900]]) {
    Object.assign(world.options, { chain: 0, stages: 0, pool: undefined, cores: undefined, ...options });
    const page = await open({ width, height });
    const about = `${JSON.stringify(options)} at ${width} x ${height}`;
    await page.locator(".node").first().waitFor();
    const { box, text, svg } = await page.evaluate(() => {
      const size = (e) => { const r = e.getBoundingClientRect(); return { w: r.width, h: r.height }; };
      return { box: size(document.querySelector(".graph-scroll")), svg: size(document.querySelector(".graph-scroll svg")), text: size(document.querySelector(".node-name")) };
    });
    assert.ok(box.h <= height / 3 + 1, `${about}: ${box.h} high`);
    assert.ok(text.h >= 10, `${about}: names are ${text.h} high`); // 15 px at a scale of two thirds
    assert.equal(await page.locator(".node").count(), (options.stages || 4) + (options.chain || 0), about);
    // All of it is seen with one press.
    await page.getByRole("button", { name: "Fit" }).click();
    await page.waitForFunction(() => { const b = document.querySelector(".graph-scroll"); return b.scrollHeight <= b.clientHeight + 1 && b.scrollWidth <= b.clientWidth + 1; });
    await page.getByRole("button", { name: "Larger" }).click();
    await page.waitForFunction((h) => document.querySelector(".graph-scroll svg").getBoundingClientRect().height > h, (await page.locator(".graph-scroll svg").evaluate((e) => e.getBoundingClientRect().height)) * 0.99);
    if (!options.stages && width > 360) assert.ok(svg.w <= box.w + 1 && svg.h <= box.h + 1, `${about} fits: ${svg.w} x ${svg.h} in ${box.w} x ${box.h}`);
    await page.close();
  }
}, { world: {} });

test("stages that share a pool are in a frame", async ({ open }) => {
  const page = await open({});
  const frame = page.locator("[data-group=both]");
  await frame.waitFor();
  await page.waitForFunction(() => document.querySelector("[data-group=both]").getAttribute("aria-label") === "pool both, 4 threads, shared by backend, work");
  const boxes = await page.evaluate(() => {
    const r = (e) => e.getBoundingClientRect(), f = r(document.querySelector(".core-group-box"));
    return ["web", "backend", "work", "answer"].map((name) => { const b = r(document.querySelector(`[data-stage=${name}] .node-box`)); return b.left > f.left && b.right < f.right && b.top > f.top && b.bottom < f.bottom; });
  });
  assert.deepEqual(boxes, [false, true, true, false]);
  assert.equal(await page.locator(".group-card").count(), 0); // a card has cores
}, { world: { pool: "both" } });

test("the sizes of batches are a distribution on the page of the stage", async ({ open }) => {
  const page = await open({ hash: "#/stage/work" });
  const rows = page.locator("table.cohorts tbody tr");
  await until(async () => (await rows.allInnerTexts()).map((t) => t.replace(/\s+/g, " ")).join("; ") === "1 50 %; 2 25 %; 3–4 0 %; 5–8 25 %", "the shares");
  await page.getByText("Events per call of the handler, 3.0 on average").waitFor();
  const widths = await rows.locator(".share-part").evaluateAll((list) => list.map((r) => Math.round(r.getAttribute("width"))));
  assert.deepEqual(widths, [100, 50, 0, 50]);
}, { world: { cohorts: true } });

test("what the threads of a stage wait for is a bar on its page, and the stack of a stuck call", async ({ open }) => {
  for (const [scheme, width] of [["light", 1280], ["dark", 360]]) {
    const page = await open({ hash: "#/stage/work", scheme, width, calm: true });
    const card = page.locator(".card:has(#times-title)");
    await card.waitFor();
    const list = async () => (await card.locator(".time-list li").allInnerTexts()).map((t) => t.replace(/\s+/g, " ")).join("; ");
    await until(async () => await list() === "running 14 % 0.50; I/O 23 % 0.80; lock 3 % 0.10; memory 0 % 0; sleep 0 % 0; other waits 0 % 0; inline stages 3 % 0.10; idle 57 % 2.00", "the shares");
    await card.getByText("When they have work, they spend 53 % of the time waiting: asleep in the handler, in a system call that waits for data. The kernel does not count").waitFor();
    const widths = await card.locator("svg.times rect").evaluateAll((r) => r.map((x) => Math.round(x.getAttribute("width"))));
    assert.deepEqual(widths, [141, 227, 27, 0, 0, 0, 27, 569]); // 2 less than the share, as a gap
    await page.locator("pre.caret", { hasText: "fsync (libc.so.6+0x1)" }).waitFor();
    await page.getByText("in thread work/3, with http.request: it has run for 4.2 s and has not returned").waitFor();
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await axeFindsNothing(page, scheme);
  }
}, { world: { times: { running: 0.5, runnable: null, io: 0.8, lock: 0.1, memory: 0, sleep: 0, blocked: 0, downstream: 0.1, idle: 2 },
  stage: { stuck_call: { id: 3, time: 1764208305, seconds: 4.2, running: true, thread: "work/3", type: "http.request", stack: ["fsync (libc.so.6+0x1)", "store (shop.so+0x2)"] } } } });

test("knobs are grouped by what they act on; those of other policies are folded", async ({ open, world }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.locator(".subject").nth(3).waitFor();
  assert.deepEqual(await page.locator(".subject h3").evaluateAll((list) => list.map((h) => h.firstChild.textContent)), ["Threads", "Queue", "Admission", "The stage itself"]);
  const admission = page.locator(".subject", { hasText: "Which events are refused" });
  await until(async () => await admission.locator(".others summary").textContent().catch(() => "") === "2 of other policies: threshold, rate", "the policy in use");
  assert.ok(await admission.getByLabel("admission.target", { exact: true }).isVisible()); // "weir: target of its own"
  assert.equal(await admission.getByLabel("admission.rate", { exact: true }).isVisible(), false);
  assert.equal(await admission.locator(".fixed:not(.others) summary").textContent(), "1 fixed while the server runs: policy auto");
  const own = page.locator(".subject", { hasText: "Options of its type" });
  assert.equal(await own.locator(".others summary").textContent(), "1 of other policies: slow");
  world.knobs.set("work admission.rate", { value: "100", until: null }); // an overridden knob is never hidden
  await admission.getByLabel("admission.rate", { exact: true }).waitFor();
  // No select is narrower than its texts.
  const clipped = await page.locator("select:visible").evaluateAll((list) => list.filter((e) => {
    const probe = document.createElement("span"), style = getComputedStyle(e);
    for (const key of ["fontFamily", "fontSize", "fontWeight", "letterSpacing"]) probe.style[key] = style[key];
    probe.style.position = "absolute";
    probe.style.whiteSpace = "pre";
    probe.textContent = [...e.options].map((o) => o.text).sort((a, b) => b.length - a.length)[0];
    document.body.append(probe);
    const room = e.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight) - 16; // its arrow
    const cut = probe.getBoundingClientRect().width > room + 1;
    probe.remove();
    return cut;
  }).map((e) => e.id || e.getAttribute("aria-label")));
  assert.deepEqual(clipped, []);
}, { world: { policies: true } });

test("an undo resets what was typed", async ({ open, world }) => {
  const page = await open({ hash: "#/stage/work" });
  await page.getByLabel("threads.max", { exact: true }).fill("8");
  await page.getByRole("button", { name: "Set threads.max" }).click();
  await page.getByText("set to 8").waitFor();
  await page.getByLabel("threads.min", { exact: true }).fill("3"); // typed, not set
  await page.getByLabel("How long to override threads.min").selectOption("1h");
  await page.getByRole("button", { name: "Undo the last change" }).click();
  await page.waitForFunction(() => document.getElementById("knob-threads.max").value === "16" && document.getElementById("knob-threads.min").value === "1");
  assert.equal(await page.getByLabel("How long to override threads.min").inputValue(), "");
  assert.equal(await page.getByText("set to 8").count(), 0);
  // A change by another operator is shown, too.
  world.knobs.set("work queue.limit", { value: "77", until: null });
  await page.waitForFunction(() => document.getElementById("knob-queue.limit").value === "77");
});

test("a mark on a chart says what it changed, and the figures before and after", async ({ open, world }) => {
  const made = { ...world.decisions()[0], id: 5, time: world.now() - 100, stage: "work", action: "grow", actor: "weir", from: 3, to: 4, rule: "more is needed", limit: "", inputs: "" };
  world.decisions = () => [made];
  const page = await open({ hash: "#/stage/work?range=5m" });
  const plot = page.locator(".plot[aria-label*='Chart of Events']");
  await plot.locator("canvas").waitFor();
  await plot.focus();
  for (let i = 0; i < 140 && !await page.locator(".chart .near").count(); i++) await page.keyboard.press("ArrowLeft");
  assert.match(await page.locator(".chart", { hasText: /^Events/ }).locator(".near").first().textContent(), /^grow: 3 → 4 threads by weir: more is needed; in [\d,]+\/s → [\d,]+\/s, done [\d,]+\/s → [\d,]+\/s$/);
});

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";

test("requests are found by path, stage, status, class and trace id", async ({ open }) => {
  const page = await open({ hash: "#/requests?n=10" });
  const paths = async () => (await page.locator(".req-path").allTextContents()).join(" ");
  const search = page.getByLabel("Search");
  await until(async () => (await page.locator(".req-path").count()) === 10, "the ten slowest");
  for (const [text, found] of [["/cart", "/cart/1 /cart/2"], ["BULK", "/bulk"], ["queue_full", "/full"], [TRACE, "/traced"], [TRACE.slice(5, 20), "/traced"], ["work", "/deep"], ["/cart vip 2", "/cart/2"]]) {
    await search.fill(text);
    await until(async () => await paths() === found, `what matches ${text}`);
  }
  assert.match(page.url(), /q=/); // a search is part of the link
  await search.fill("nothing like this");
  await page.getByText("None of the 36 slowest requests matches.").waitFor();
  await search.fill("");
  await page.getByLabel("Status").selectOption("queue_full");
  await until(async () => await paths() === "/full", "by status");
  await page.getByLabel("Status").selectOption("");
  await page.locator("#req-stage").selectOption("work");
  await until(async () => await paths() === "/deep", "by stage");
  await page.locator(".requests summary").click();
  await axeFindsNothing(page, "a search");
}, { world: { slow: [...Array.from({ length: 30 }, () => ({ path: "/x" })), { path: "/cart/1" }, { path: "/cart/2" }, { path: "/bulk", class: "bulk" },
  { path: "/full", outcome: "queue_full", end: "backend" }, { path: "/traced", trace: TRACE }, { path: "/deep", spans: [{ stage: "work", after: 0, wait: 0, service: 0.1, awaiting: 0 }] }] } });

test("overload control is switched after asking twice", async ({ open, world }) => {
  const page = await open({ hash: "#/config" });
  const card = page.locator(".card:has(#overload-title)");
  assert.ok(await card.getByRole("button", { name: "enforce" }).isDisabled());
  await card.getByRole("button", { name: "shadow" }).click();
  await card.getByText("Events that overload control would refuse are admitted and counted.").waitFor();
  assert.equal(world.calls.length, 0);
  await card.getByRole("button", { name: "shadow? Press again" }).click();
  await card.getByText("overload control: shadow").waitFor();
  assert.deepEqual(world.calls, [{ method: "PUT", path: "/api/v1/overload", body: { mode: "shadow" } }]);
  await page.getByRole("link", { name: "overload: shadow" }).waitFor(); // in the header of every page
  await axeFindsNothing(page, "the kill switch");
  await card.getByRole("button", { name: "enforce" }).click();
  await card.getByRole("button", { name: "enforce? Press again" }).click();
  await page.waitForFunction(() => !document.querySelector(".pill.mode"));
});

test("overridden knobs are saved to the file after a look at its lines", async ({ open, world }) => {
  const page = await open({ hash: "#/config" });
  const saveIt = page.getByRole("button", { name: "Save to file …" }), saves = () => world.calls.filter((c) => c.path === "/api/v1/save").map((c) => c.body);
  await saveIt.click();
  await page.getByRole("heading", { name: "Nothing to save" }).waitFor();
  await page.keyboard.press("Escape");
  world.knobs.set("work threads.max", { value: "8", until: null });
  world.knobs.set("backend queue.limit", { value: "9", until: world.now() + 600 });
  await saveIt.click();
  await page.getByRole("heading", { name: "What would be written" }).waitFor();
  assert.equal(await page.locator(".diff .added").textContent(), "+     threads.max: 8   # work\n");
  await page.getByText(/Not saved, since it is only until .*: backend\.queue\.limit = 9\./).waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.id), "save-title");
  await axeFindsNothing(page, "a preview of what is saved");
  assert.deepEqual(saves(), [{ preview: true }, { preview: true }]);
  await page.getByRole("button", { name: "Write the file" }).click();
  await page.getByRole("heading", { name: "Saved", exact: true }).waitFor();
  assert.deepEqual(saves().at(-1), {});
  await page.getByRole("button", { name: "Close" }).click();
  assert.ok(await page.evaluate(() => document.activeElement.textContent.startsWith("Save to file")));
  world.options.broken = true;
  await saveIt.click();
  await page.locator("pre.caret", { hasText: "written as ${TIME}" }).waitFor();
}, { noise: /status of 422/ });

test("annotations of the configuration are not cut", async ({ open }) => {
  for (const width of [1280, 360]) {
    const page = await open({ hash: "#/config", width });
    await page.locator(".origin").first().waitFor();
    const cut = await page.evaluate(() => {
      const card = document.querySelector(".yaml").getBoundingClientRect();
      return [...document.querySelectorAll(".origin, .yaml code")].filter((e) => e.getBoundingClientRect().right > card.right + 0.5 || e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).display !== "inline").length;
    });
    assert.equal(cut, 0, `${width}`);
  }
}, { world: { evil: ` ${"a-long-path.".repeat(12)}` } });

test("one class has no table of classes", async ({ open }) => {
  const page = await open({});
  await page.locator(".big-value").first().waitFor();
  await until(async () => await page.locator(".big-value").first().textContent() === "40ms", "the response time");
  assert.equal(await page.locator("#classes-title").count(), 0);
}, { world: { classes: ["default"] } });

test("a core group is a box in the graph, a card with its cores, and on the pages of its stages", async ({ open }) => {
  const page = await open({});
  const box = page.locator("[data-group=core]");
  await box.waitFor();
  await page.waitForFunction(() => /^core group core, wavefront, gate time: 10ms, starve 25 ms, 2 cores, 90 %, 45 % busy$/
    .test(document.querySelector("[data-group=core]")?.getAttribute("aria-label")));
  assert.equal(await box.locator(".core-used").count(), 2);
  const card = page.locator(".group-card");
  assert.equal(await card.locator(".hint").first().textContent(), "wavefront · gate time: 10ms · starve 25 ms");
  const cells = async (row) => (await card.locator("tbody tr").nth(row).locator("td").allTextContents()).join(" | ");
  const same = "6.0 | schedule 75 %, urgent 20 %, starve 5 % | gate 10 %, starve 5 % | 25 %";
  await until(async () => await cells(0) === `90 % | 100 | ${same} | 12 | 3 | 17 | 27 ms`, "core 0");
  await until(async () => await cells(1) === `45 % | 100 | ${same} | 12 | 3 | 17 | 27 ms`, "core 1");
  await until(async () => await cells(2) === `100 % | 200 | ${same} | 24 | 6 | 34 | 27 ms | 128 events or 2 ms`, "both at work");
  await visit(page, "#/stage/work");
  assert.match(await page.locator("table.cores").textContent(), /core 1\s*45 %/);
}, { world: { cores: 2 } });

test("a core that sleeps in a handler is marked in the graph, in its card, and on the pages of its stages", async ({ open }) => {
  const page = await open({ hash: "#/overview" });
  await page.waitForFunction(() => /, 90 %, 45 % busy, core 0 blocked in work$/.test(document.querySelector("[data-group=core]")?.getAttribute("aria-label")));
  assert.equal(await page.locator("[data-group=core] .asleep").count(), 1);
  const said = "Core 0 of the group core has slept for 6.2 s in a handler of work; its spare thread has slept, too, for 1.5 s in one of answer";
  const blocked = page.getByRole("list", { name: "Blocked cores" });
  assert.equal(await blocked.textContent(), said);
  assert.match(await page.locator(".legend").first().textContent(), /core that sleeps in a handler/);
  assert.equal(await page.locator("table.cores .core-bar.asleep").count(), 1);
  const times = page.locator("table.cores td[data-label='blocked']");
  assert.deepEqual(await times.allTextContents(), ["3", "0"]);
  for (const name of ["work", "answer"]) {
    await visit(page, `#/stage/${name}`);
    assert.equal(await blocked.textContent(), said, name);
  }
  await visit(page, "#/stage/backend");
  assert.equal(await blocked.count(), 0);
}, { world: { cores: 2, asleep: 6.2, spare: 1.5 } });

test("a source says how many of its threads are full, and how many clients wait", async ({ open }) => {
  const page = await open({ hash: "#/stage/web" });
  await page.getByText("per_thread 1; 2 with an idle client; 12 clients wait").waitFor();
  assert.match(await page.locator(".facts").first().textContent(), /Full threads4 of 4/);
}, { world: { clients: { threads: 4, full: 4, idle: 2, per_thread: 1, waiting: 12 } } });

test("a core that has left its group is not counted", async ({ open }) => {
  const page = await open({});
  await page.waitForFunction(() => /, 1 core, 90 % busy$/.test(document.querySelector("[data-group=core]")?.getAttribute("aria-label")));
  assert.equal(await page.locator("[data-group=core] .core-used").count(), 1);
  const rows = async () => (await page.locator("table.cores tbody th").allTextContents()).join(", ");
  assert.equal(await rows(), "core 0, core 1 (left)");
  await visit(page, "#/stage/work");
  await until(async () => await rows() === "core 0, core 1 (left)", "cores of a stage");
}, { world: { cores: 1, left: 1 } });

test("a knob of a core group is turned in its card", async ({ open, world }) => {
  const page = await open({});
  await page.getByText("Knobs of the group core").click();
  await page.getByLabel("starve", { exact: true }).fill("5ms");
  await page.getByRole("button", { name: "Set starve" }).click();
  await page.getByText("set to 5ms").waitFor();
  assert.deepEqual(world.calls.at(-1), { method: "PUT", path: "/api/v1/groups/core/knobs/starve", body: { value: "5ms" } });
  await page.getByRole("button", { name: "Undo the last change" }).click();
  await page.getByText("The last change was undone.").waitFor();
  await axeFindsNothing(page, "knobs of a group");
}, { world: { cores: 2 } });

test("the objective of a class is set below the table of classes, and the timeline names the class", async ({ open, world }) => {
  const page = await open({});
  await page.getByText("Objectives of the classes").click();
  const card = page.locator(".card:has(> .card-head > #class-bulk)");
  await card.getByLabel("slo", { exact: true }).fill("2s");
  await card.getByRole("button", { name: "Set slo" }).click();
  await card.getByText("set to 2s").waitFor();
  assert.deepEqual(world.calls.at(-1), { method: "PUT", path: "/api/v1/classes/bulk/knobs/slo", body: { value: "2s" } });
  await axeFindsNothing(page, "knobs of a class");
  await visit(page, "#/timeline");
  const entry = page.locator(".feed .act").first();
  await until(async () => /class bulk set slo 500ms → 2s/.test(await entry.textContent()), "the change names the class and the knob");
  assert.equal(await entry.locator(".stage-link").count(), 0); // there is no page of a class
});

test("what was before the last restart says so, wherever it is shown", async ({ open }) => {
  const page = await open({});
  const feed = page.locator("ol.feed > li");
  await until(async () => await feed.count() === 4, "the decisions of the overview");
  const badges = async () => feed.evaluateAll((rows) => rows.map((r) => r.textContent.includes("before the restart")));
  assert.deepEqual(await badges(), [false, false, true, true]);
  await visit(page, "#/timeline?range=6h");
  await until(async () => await feed.count() === 6, "four decisions, a change and the line of the restart");
  const rows = await feed.evaluateAll((list) => list.map((r) => [r.classList.contains("restart"), r.textContent.includes("before the restart")]));
  assert.deepEqual(rows, [[false, false], [false, false], [true, false], [false, true], [false, true], [false, true]]);
  assert.equal(await page.getByRole("button", { name: "Undo", exact: true }).count(), 0); // the only change is of an earlier process
  assert.match(await page.locator(".feed .act").textContent(), /set threads\.max 16 → 8/);
  await axeFindsNothing(page, "before a restart");
  await visit(page, "#/stage/work?range=6h");
  await until(async () => /before the restart/.test(await page.locator(".card:has(#stage-feed-title)").textContent()), "the decisions of the stage");
}, { world: { restarted: true } });

test("a core group: axe finds nothing, and 360 pixels are enough", async ({ open }) => {
  for (const [scheme, width] of [["light", 1280], ["dark", 360]]) {
    const page = await open({ scheme, width, calm: true });
    for (const hash of ["#/overview", "#/stage/work"]) {
      await visit(page, hash);
      await page.locator("table.cores").waitFor();
      await axeFindsNothing(page, `${hash} ${scheme}`);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= width, `${hash} is ${wide} wide`);
    }
  }
}, { world: { cores: 20, asleep: 6.2, spare: 1.5 } });

test("what an operator drains is no overload", async ({ open }) => {
  const page = await open({});
  await page.waitForFunction(() => /^By an operator: work is drained, 40 waiting\./.test(document.querySelector(".verdict").textContent.trim()));
}, { world: { away: 0.001, stage: { state: "drained" } } });

test("a reload stands on the timeline once, with who did it", async ({ open, world }) => {
  const at = world.now();
  world.acts.unshift({ id: 1, at, actor: "anna", what: "reload", target: "made-up", from: "", to: "a new graph of 4 stages", undone: false });
  const decision = { ...world.decisions()[0], id: 999, time: at, stage: "", actor: "reload", action: "reload", rule: "a new graph of 4 stages takes over", from: 0, to: 0 };
  const made = world.decisions();
  world.decisions = () => [decision, ...made];
  const page = await open({ hash: "#/timeline" });
  await page.locator(".feed.long > li.act").waitFor();
  assert.equal(await page.locator(".feed.long > li", { hasText: "a new graph of 4 stages" }).count(), 1);
  assert.match(await page.locator(".feed.long > li.act").textContent(), /the server reload .*a new graph of 4 stages anna/);
  assert.equal(await page.getByRole("button", { name: "Undo" }).count(), 0);
}, { world: {} });

test("the bars of a request add up: as long as it took, and the time at no stage is named", async ({ open }) => {
  const page = await open({ hash: "#/requests" });
  await page.locator(".requests li").first().waitFor();
  const bars = await page.locator(".requests li").evaluateAll((list) => list.map((li) => ({
    all: Number(li.querySelector(".bar-all").getAttribute("width")), first: Number(li.querySelector(".bar-service").getAttribute("x")) })));
  const took = [0.41, 0.35, 0.3, 0.12, 0.02];
  bars.forEach((b, i) => {
    assert.ok(Math.abs(b.all - 100 * took[i] / 0.41) < 0.01, `request ${i} is ${b.all} long`);
    assert.ok(Math.abs(b.first - 50 * took[i] / 0.41) < 0.01, `request ${i} begins at ${b.first}`);
  });
  await page.locator(".requests summary").first().click();
  assert.match(await page.locator(".requests tr", { hasText: "at no stage" }).first().textContent(), /246 ms/);
}, { world: {} });

test("an alert is shown when it is raised, and goes when it is over", async ({ open, world }) => {
  const page = await open({});
  await until(() => world.streams.size > 0, "the page listens");
  world.send("alert", world.alert(7, "stage_stuck", "bad"));
  await page.locator(".alerts li").waitFor();
  await page.waitForFunction(() => /^Stuck: a handler of work does not return\.a handler of work is stuck/.test(document.querySelector(".verdict").textContent.trim()));
  world.send("alert", world.alert(7, "stage_stuck", "bad", world.now()));
  await page.waitForFunction(() => !document.querySelector(".alerts"));
  await visit(page, "#/timeline");
  await page.locator("li.alert .outcome.helped").waitFor();
});

test("older decisions are read when they are asked for, once each", async ({ open, world }) => {
  const page = await open({ hash: "#/timeline" });
  await page.waitForFunction(() => document.querySelectorAll(".feed.long > li").length === 200);
  await page.getByRole("button", { name: "Older" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".feed.long > li").length === 400);
  await page.getByRole("button", { name: "Older" }).click();
  await page.waitForFunction(() => document.querySelectorAll(".feed.long > li").length === 454);
  assert.equal(await page.getByRole("button", { name: "Older" }).count(), 0);
  assert.equal(await page.getByText("rule 1", { exact: true }).count(), 1);
  world.options.decisions++; // the page requests the newest again and keeps the old ones
  await page.waitForFunction(() => document.querySelectorAll(".feed.long > li").length === 455);
}, { world: { decisions: 450 } });

test("ten minutes of ticks of 30 stages at 4 Hz leave no more than they must", async ({ open, world }) => {
  const page = await open({});
  await until(() => world.streams.size > 0, "the page listens");
  const cdp = await page.context().newCDPSession(page);
  let at = world.now();
  // Ticks are sent as fast as the page can process them: after each 40, two frames must be drawn.
  const feed = async (n) => {
    for (let sent = 0; sent < n;) {
      for (let k = 0; k < 40; k++, sent++) world.tick(at += 0.25);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
    }
  };
  const look = async () => {
    for (let i = 0; i < 2; i++) await cdp.send("HeapProfiler.collectGarbage");
    const { usedSize } = await cdp.send("Runtime.getHeapUsage");
    return { heap: usedSize, ...(await cdp.send("Memory.getDOMCounters")) };
  };
  await cdp.send("HeapProfiler.enable");
  await feed(1000); // the page's 15 minutes of rows are full: from here on nothing may grow
  const before = await look();
  await feed(2400);
  const after = await look();
  assert.ok(after.heap - before.heap < 10e6, `the heap grew from ${before.heap} to ${after.heap}`);
  assert.ok(after.nodes - before.nodes < 500, `from ${before.nodes} to ${after.nodes} nodes`);
  assert.ok(after.jsEventListeners - before.jsEventListeners < 50, `from ${before.jsEventListeners} to ${after.jsEventListeners} listeners`);
}, { world: { stages: 30 } });

test("a viewer sees no acts", async ({ open, world }) => {
  world.reload(false, { broken: true });
  const page = await open({ hash: "#/stage/work" });
  await page.getByText("threads.max").first().waitFor();
  await page.getByText("Read-only: a viewer cannot make changes.").waitFor();
  assert.equal(await page.locator("main button, main input").count(), 0);
  await visit(page, "#/timeline");
  assert.equal(await page.locator("main button").count(), 0);
  await visit(page, "#/config");
  await page.locator("pre.caret").waitFor(); // a viewer sees the errors, too
  assert.equal(await page.locator("main button").count(), 0);
  assert.equal(world.calls.length, 0);
}, { world: { role: "viewer" } });

test("a reload is looked at, then done, with the keyboard alone", async ({ open, world }) => {
  const page = await open({ hash: "#/config", calm: true });
  await tabTo(page, () => document.activeElement.textContent === "Reload …");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.textContent === "What a reload would change");
  assert.deepEqual(world.calls.at(-1).body, { preview: true });
  assert.equal(world.reloads.total, 0);
  const lines = await page.locator(".changes li").allInnerTexts();
  assert.deepEqual(lines.map((l) => l.replace(/\s+/g, " ")), ["~ admin.listen 127.0.0.1:9900 → becomes 127.0.0.1:9901 at the next start", "+ stages.extra respond new stage",
    "~ stages.answer.with.body hidden: it comes from the environment rebuilt", "~ stages.work.threads.max 16 → becomes 8 in place",
    '~ stages.web.with.user "" → becomes header.x-user rebuilt', "− stages.old drop stage removed"]);
  await axeFindsNothing(page, "a preview");
  await page.keyboard.press("Escape");
  await page.waitForFunction(() => document.activeElement.textContent === "Reload …" && !document.querySelector(".reload"));
  await page.keyboard.press("Enter");
  await tabTo(page, () => document.activeElement.textContent === "Apply changes");
  await page.keyboard.press("Enter");
  await page.waitForFunction(() => document.activeElement.textContent === "Reloaded");
  assert.equal(world.reloads.graph, 1);
  await page.locator(".stage-knobs b", { hasText: "extra" }).waitFor(); // the graph and its list of stages were read again
  await page.getByText("A new graph is running").waitFor();
}, { world: { more: "extra" } });

test("after a reload by somebody else the page has the new stages, and stays where it is", async ({ open, world }) => {
  const page = await open({ hash: "#/stage/work?range=15m" });
  await page.getByLabel("threads.max", { exact: true }).fill("7"); // a draft
  await until(() => world.streams.size > 0, "the page listens");
  world.reload(false);
  await page.locator("#stage-choice option", { hasText: "extra" }).waitFor({ state: "attached" });
  assert.equal(await page.evaluate(() => location.hash), "#/stage/work?range=15m");
  assert.equal(await page.getByLabel("threads.max", { exact: true }).inputValue(), "7");
}, { world: { more: "extra" } });

test("a file that can not be used is told as check tells it, until one can", async ({ open, world }) => {
  for (const [scheme, width] of [["light", 1280], ["dark", 360]]) {
    world.options.broken = true;
    const page = await open({ hash: "#/config", scheme, width, calm: true });
    await page.getByRole("button", { name: "Reload …" }).click();
    await page.getByRole("heading", { name: "This file cannot be used" }).waitFor();
    const said = await page.locator("pre.caret").textContent();
    assert.equal(said, world.reloads.last.text); // including every blank before the caret
    await page.getByText("The running configuration was not changed").waitFor();
    assert.equal(await page.getByRole("button", { name: "Apply changes" }).count(), 0);
    await axeFindsNothing(page, `a broken file, ${scheme}`);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it fits");
    await page.getByRole("button", { name: "Close" }).click();
    world.reload(false); // by a signal, say; the page is not notified, but polls
    await page.locator("#failed-title").waitFor();
    await visit(page, "#/overview");
    await page.locator(".alerts", { hasText: "The running configuration was not changed" }).waitFor();
    await axeFindsNothing(page, `the overview, ${scheme}`);
    world.reload(true, { broken: false }); // a preview does not clear the failure
    world.options.broken = false;
    await page.getByRole("link", { name: "See what is wrong" }).click();
    await page.locator("pre.caret").waitFor();
    world.reload(false);
    await page.waitForFunction(() => !document.querySelector("pre.caret"));
    await visit(page, "#/overview");
    assert.equal(await page.locator(".alerts").count(), 0);
  }
});

test("changes of hostile names are text", async ({ open, world }) => {
  const page = await open({ hash: "#/config" });
  await page.locator("pre.caret", { hasText: EVIL }).waitFor();
  await page.getByRole("button", { name: "Reload …" }).click();
  await page.locator(".changes code", { hasText: EVIL }).first().waitFor();
  assert.deepEqual(await page.evaluate(() => [window.pwned, document.querySelectorAll("main img, main script").length]), [undefined, 0]);
  assert.ok(world.reloads.failure);
}, { world: { evil: EVIL, more: "more" } });

test("what a server has not is said in a sentence", async ({ open }) => {
  const page = await open({ hash: "#/requests" });
  for (const [hash, text] of [["#/requests", "does not keep its slowest requests"], ["#/profile", "has no profile"], ["#/config", "does not show its file"], ["#/timeline", "keeps no list of operators' changes"],
    ["#/stage/work", "keeps no history"], ["#/stage/work", "does not list the events of a queue"]]) {
    await visit(page, hash);
    await page.getByText(text).waitFor();
  }
  await visit(page, "#/overview");
  await page.waitForFunction(() => (document.querySelector(".spark-line")?.getAttribute("d").match(/L/g) || []).length >= 2); // from differences
}, { world: { without: ["GET /api/v1/requests/slowest", "GET /api/v1/profile", "GET /api/v1/config", "GET /api/v1/changes", "GET /api/v1/history", "GET /events",
  "GET /api/v1/stages/{stage}/queue", "POST /api/v1/undo", "DELETE /api/v1/stages/{stage}/knobs/{knob}"] } });

test("one stream for all pages of a browser, which the next one takes over", async ({ open, world }) => {
  const first = await open({});
  await until(() => world.streams.size === 1, "a stream");
  const second = await first.context().newPage();
  await second.goto(first.url());
  await second.waitForFunction(async () => (await navigator.locks.query()).pending.length === 1); // it waits for the lock
  await second.waitForFunction(() => document.querySelector(".pill.link")?.title.startsWith("The server sends"));
  assert.equal(world.streams.size, 1);
  await first.close();
  await until(() => world.streams.size === 1, "the other page's stream");
  await second.close();
});

test("a server that goes is told, its numbers stay, and another one is taken up", async ({ open, server, world }) => {
  const page = await open({ calm: true });
  await page.locator("table .stage-link").first().waitFor();
  const { port } = server;
  await server.close();
  await page.getByRole("heading", { name: /No answer from the server/ }).waitFor();
  assert.ok(await page.locator("table .stage-link").count() >= 4);
  assert.ok(await page.locator("main.stale").count());
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    await axeFindsNothing(page, `old numbers, ${colorScheme}`);
  }
  const other = await serve(new World({ ...world.options, up: 3, names: { work: "other" } }), port);
  await page.locator('.node[data-stage="other"]').waitFor();
  await page.waitForFunction(() => !document.querySelector("main.stale") && document.querySelector(".pill.link").textContent === "live");
  assert.equal(await page.locator('.node[data-stage="work"]').count(), 0);
  // The history of the old server is dropped: the new one has run for a few seconds.
  await page.waitForFunction(() => (document.querySelector(".spark-line")?.getAttribute("d").match(/L/g) || []).length < 100);
  await other.close();
}, { noise: /net::ERR|Failed to load/ });

test("weir itself: the page of a running server, killed and started again", async ({ open }) => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const base = `http://127.0.0.1:${adminPort}`;
  let server = await startWeir(port, adminPort);
  try {
    for (let i = 0; i < 30; i++) await ask(`http://127.0.0.1:${port}/x`);
    const routes = JSON.parse(await ask(`${base}/api/v1`)).routes.map((r) => r.path);
    const page = await open({ base });
    await page.locator('.node[data-stage="work"]').waitFor();
    if (routes.includes("/api/v1/history")) {
      // No requests have been sent to the server since the page was opened.
      await page.waitForFunction(() => /max [1-9]/.test(document.querySelectorAll(".big-most")[1]?.textContent || ""));
    }
    await tabTo(page, () => document.activeElement.getAttribute("data-stage") === "work");
    await page.keyboard.press("Enter");
    await page.waitForFunction(() => document.getElementById("knob-queue.limit"));
    await tabTo(page, () => document.activeElement.id === "knob-queue.limit");
    await page.keyboard.press("Control+A");
    await page.keyboard.type("77");
    await page.keyboard.press("Enter");
    await page.getByText("set to 77").waitFor();
    await until(async () => /"(effective|value)":"77"/.test(await ask(`${base}/api/v1/stages/work/knobs/queue.limit`)), "the knob");
    await stop(server);
    await page.getByText(/No answer from the server/).waitFor();
    server = await startWeir(port, adminPort);
    await page.waitForFunction(() => document.querySelector(".pill.link").textContent === "live" && document.getElementById("knob-queue.limit")?.value === "1024");
  } finally {
    await stop(server);
  }
}, { noise: /net::ERR|Failed to load/ });

test("weir itself: a token lets in, a viewer sees no acts, and who logs out is out", async ({ open }) => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const base = `http://127.0.0.1:${adminPort}`;
  const folder = mkdtempSync(join(tmpdir(), "weir-ui-"));
  const tokens = { boss: randomBytes(32).toString("base64url"), eye: randomBytes(16).toString("hex") };
  for (const [name, token] of Object.entries(tokens)) writeFileSync(join(folder, name), `${token}\n`, { mode: 0o600 });
  const yaml = readFileSync(join(top, "config/servers/overload.yaml"), "utf8")
    .replace(/^admin: .*$/m, `admin:\n  listen: "127.0.0.1:${adminPort}"\n  tokens: { boss: { role: operator, file: boss }, eye: { file: eye } }`);
  writeFileSync(join(folder, "server.yaml"), yaml);
  const server = await startWeir(port, adminPort, join(folder, "server.yaml"));
  try {
    for (const scheme of ["light", "dark"]) {
      await axeFindsNothing(await open({ base, scheme, calm: true, locked: true }), scheme);
    }
    const page = await open({ base, width: 360, locked: true });
    assert.equal(await page.evaluate(() => document.activeElement.id), "login-token");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= 360), "the form fits a telephone");
    await page.keyboard.type("this is none of them");
    await page.keyboard.press("Enter");
    await page.getByText("does not know this token").waitFor();
    await page.keyboard.type(tokens.eye); // replaces the old text, which is selected
    await page.keyboard.press("Enter");
    await page.locator('.node[data-stage="work"]').waitFor();
    await page.getByText("viewer", { exact: true }).waitFor();
    await page.waitForFunction(() => /sends updates/.test(document.querySelector(".pill.link")?.title)); // the stream has the cookie
    await visit(page, "#/stage/work");
    await page.getByText("Read-only: a viewer cannot make changes.").waitFor();
    assert.equal(await page.locator("main button, main input").count(), 0);
    assert.equal(await page.evaluate(() => document.cookie), "", "a script can read the cookie");
    assert.ok(await page.evaluate((t) => ![localStorage, sessionStorage].some((s) => JSON.stringify(s).includes(t)), tokens.eye));
    await page.getByRole("button", { name: "Log out" }).click();
    await page.locator("#login-token").fill(tokens.boss);
    await page.keyboard.press("Enter");
    await page.locator("#knob-queue\\.limit").fill("77");
    await page.keyboard.press("Enter");
    await page.getByText("set to 77").waitFor();
    await visit(page, "#/timeline");
    await page.locator(".feed .actor", { hasText: "boss" }).first().waitFor();
  } finally {
    await stop(server);
    rmSync(folder, { recursive: true, force: true });
  }
}, { noise: /net::ERR|Failed to load/ });

test("weir itself: a file that was edited is reloaded by the page, a broken one is not", async ({ open }) => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const folder = mkdtempSync(join(tmpdir(), "weir-ui-"));
  const file = join(folder, "server.yaml");
  const yaml = readFileSync(join(top, "config/servers/overload.yaml"), "utf8");
  writeFileSync(file, yaml);
  const server = await startWeir(port, adminPort, file);
  try {
    const page = await open({ base: `http://127.0.0.1:${adminPort}`, hash: "#/config?theme=dark" });
    await page.locator(".stage-knobs").first().waitFor();
    assert.equal(await page.getByText("newcomer").count(), 0);
    writeFileSync(file, `${yaml.replace(/to: +answer/, "to: newcomer")}\n  newcomer: { use: delay, with: { time: 1ms }, to: answer }\n`);
    await page.getByRole("button", { name: "Reload …" }).click();
    await page.locator('.changes li[data-effect="add"]', { hasText: "stages.newcomer" }).waitFor();
    await page.getByRole("button", { name: "Apply changes" }).click();
    await page.getByRole("heading", { name: "Reloaded" }).waitFor();
    await page.locator(".stage-knobs b", { hasText: "newcomer" }).waitFor();
    await page.locator(".yaml", { hasText: "newcomer: { use: delay" }).waitFor();
    await until(() => ask(`http://127.0.0.1:${port}/x`).then((t) => t.length > 0, () => false), "an answer of the new graph");
    assert.equal(await page.evaluate(() => location.hash), "#/config?theme=dark");

    writeFileSync(file, yaml.replace(/^stages:$/m, "stagess:"));
    server.kill("SIGHUP");
    await visit(page, "#/overview");
    await page.locator('.node[data-stage="newcomer"]').waitFor();
    await page.locator(".alerts", { hasText: "a signal failed: 1 error" }).waitFor();
    await page.getByRole("link", { name: "See what is wrong" }).click();
    await page.locator("pre.caret", { hasText: "^^^^^^" }).waitFor();
    writeFileSync(file, yaml);
    server.kill("SIGHUP");
    await page.waitForFunction(() => !document.querySelector("pre.caret") && !document.querySelector("main").textContent.includes("newcomer"));
    await page.goto("about:blank"); // its requests end before the server is killed
  } finally {
    await stop(server);
    rmSync(folder, { recursive: true, force: true });
  }
});

test("weir itself: a knob set on the page is saved to the file, and overload control is switched", async ({ open }) => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const base = `http://127.0.0.1:${adminPort}`, folder = mkdtempSync(join(tmpdir(), "weir-ui-")), file = join(folder, "server.yaml");
  const yaml = readFileSync(join(top, "config/servers/overload.yaml"), "utf8");
  writeFileSync(file, yaml);
  const server = await startWeir(port, adminPort, file);
  try {
    const page = await open({ base, hash: "#/stage/work" });
    await page.locator("#knob-queue\\.limit").fill("77");
    await page.keyboard.press("Enter");
    await page.getByText("set to 77").waitFor();
    await page.getByText(/of other policies: threshold, rate, burst/).waitFor(); // the server's policy here is `weir`
    await page.getByRole("link", { name: "Save to file" }).click();
    await page.getByRole("button", { name: "Save to file …" }).click();
    await page.locator(".diff .added", { hasText: "limit: 77" }).waitFor();
    assert.equal(readFileSync(file, "utf8"), yaml);
    await page.getByRole("button", { name: "Write the file" }).click();
    await page.getByRole("heading", { name: "Saved", exact: true }).waitFor();
    assert.equal(readFileSync(file, "utf8"), yaml.replace(/(work:[^]*?limit: )1024/, "$177"));
    await page.getByRole("button", { name: "off", exact: true }).click();
    await page.getByRole("button", { name: "off? Press again" }).click();
    await until(async () => /"off"/.test(await ask(`${base}/api/v1/overload`)), "the mode");
    await page.getByRole("link", { name: "overload: off" }).waitFor();
    await page.goto("about:blank");
  } finally {
    await stop(server);
    rmSync(folder, { recursive: true, force: true });
  }
});

test("weir itself: a stage that holds events shows how many are under way", async ({ open }) => {
  const [port, adminPort] = [await freePort(), await freePort()];
  const folder = mkdtempSync(join(tmpdir(), "weir-ui-"));
  const file = join(folder, "server.yaml");
  writeFileSync(file, `weir: 1
admin: { listen: "127.0.0.1:${adminPort}" }
stages:
  web: { use: http.server, with: { listen: "127.0.0.1:${port}" }, to: { request: db } }
  db: { use: hold, with: { time: 1m }, width: { max: 2, policy: static }, slo: 1h, to: answer }
  answer: { use: respond, threads: inline }
`);
  const server = await startWeir(port, adminPort, file);
  try {
    for (let i = 0; i < 3; i++) ask(`http://127.0.0.1:${port}/`).catch(() => {}); // they end with the server
    const page = await open({ base: `http://127.0.0.1:${adminPort}`, hash: "#/stage/db" });
    await page.locator(".facts", { hasText: "Under way2 of 2" }).waitFor();
    await page.locator("#knob-width\\.max").fill("3");
    await page.keyboard.press("Enter");
    await page.locator(".facts", { hasText: "Under way3 of 3" }).waitFor();
    await page.locator(".feed", { hasText: "width: 2 → 3 at once" }).waitFor();
    await page.locator(".plot[aria-label*='Chart of Width. width: now 3']").waitFor();
    await visit(page, "#/overview");
    await page.locator("table", { hasText: "3 of 3 under way" }).waitFor();
    await page.goto("about:blank"); // its requests end before the server is killed
  } finally {
    await stop(server);
    rmSync(folder, { recursive: true, force: true });
  }
});

// ---- helpers ----

const MUST_SHOW = { overview: ".node", stage: ".knob", requests: ".card h2", profile: ".segments", timeline: ".lane", config: ".stage-knobs", compare: ".side" };

async function axeFindsNothing(page, where) {
  await page.evaluate(axe);
  const found = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] })
    .then((r) => r.violations.map((v) => `${v.id}: ${v.nodes.map((n) => `${n.target} (${n.failureSummary})`).slice(0, 3).join("; ")}`)));
  assert.deepEqual(found, [], where);
}

async function visit(page, hash) {
  await page.evaluate((h) => { location.hash = h; }, hash);
  const name = hash.replace(/^#\//, "").split(/[/?]/)[0];
  await page.locator(MUST_SHOW[name]).first().waitFor({ state: "attached" });
  await page.waitForFunction(() => !/Waiting for the|Reading the/.test(document.querySelector("main").textContent));
}

// Press `key` until `there` holds for the focused element; fails when the keyboard cannot reach it.
async function tabTo(page, there, key = "Tab") {
  for (let i = 0; i < 200; i++) {
    if (await page.evaluate(there)) return;
    await page.keyboard.press(key);
  }
  assert.fail(`the keyboard does not reach ${there}`);
}

async function until(condition, what) {
  const end = Date.now() + PATIENCE;
  while (!(await condition())) {
    assert.ok(Date.now() < end, `${what} never came`);
    await new Promise((done) => setTimeout(done, 50));
  }
}

const freePort = () => new Promise((done) => {
  const s = createServer().listen(0, "127.0.0.1", () => {
    const { port } = s.address();
    s.close(() => done(port));
  });
});

const ask = (url) => new Promise((done, failed) => {
  http.get(url, { agent: false }, (r) => {
    let text = "";
    r.on("data", (c) => { text += c; });
    r.on("end", () => done(text));
  }).on("error", failed);
});

async function startWeir(port, adminPort, yaml = join(top, "config/servers/overload.yaml")) {
  const child = spawn(weir, ["run", yaml],
    { env: { ...process.env, PORT: String(port), ADMIN_PORT: String(adminPort) }, stdio: "ignore" });
  await until(() => ask(`http://127.0.0.1:${adminPort}/readyz`).then((t) => t.startsWith("ready"), () => false), "weir");
  return child;
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = new Promise((done) => child.once("exit", done));
  child.kill("SIGKILL");
  await gone;
}

// Run one test with a world and browser contexts of its own; messages on the console are failures.
async function run(browser, { name, f, world: options, noise }) {
  const world = new World({ dist, ...options });
  const server = await serve(world);
  const base = `http://127.0.0.1:${server.port}`;
  const said = [], contexts = [];
  const open = async ({ base: at = base, hash = "", scheme = "light", width = 1280, height = 900, calm = false, locked = false }) => {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme, reducedMotion: calm ? "reduce" : "no-preference" });
    contexts.push(context);
    context.setDefaultTimeout(PATIENCE);
    const page = await context.newPage();
    page.on("console", (m) => { if (["error", "warning"].includes(m.type()) && !noise?.test(m.text())) said.push(m.text()); });
    page.on("pageerror", (e) => said.push(e.message));
    await page.goto(`${at}/${hash}`);
    if (locked) await page.locator("#login-token").waitFor();
    else await page.waitForFunction(() => document.querySelector(".pill.link")?.textContent === "live");
    return page;
  };
  const begun = Date.now();
  try {
    await f({ open, base, world, server });
    assert.deepEqual(said, [], "words on the console");
    console.log(`ok      ${name} (${((Date.now() - begun) / 1000).toFixed(1)} s)`);
    return true;
  } catch (e) {
    console.log(`FAILED  ${name}\n${e.stack}\n${said.join("\n")}`);
    return false;
  } finally {
    for (const c of contexts) await c.close();
    await server.close().catch(() => {});
  }
}

const profile = mkdtempSync(join(tmpdir(), "weir-ui-"));
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"], env: { ...process.env, HOME: profile } });
let failed = 0;
try {
  for (const t of tests) if (t.name.includes(pattern) && !(await run(browser, t))) failed++;
} finally {
  await browser.close();
  rmSync(profile, { recursive: true, force: true });
}
console.log(failed ? `${failed} failed` : "all passed");
process.exit(failed ? 1 : 0);
