// SPDX-License-Identifier: MIT
// Builds the dashboard into dist: four files with stable names, and the licences of what they bundle.
import { readFileSync } from "node:fs";
import { defineConfig } from "vite";

const BUNDLED = ["preact", "@preact/signals", "@preact/signals-core", "uplot", "@dagrejs/dagre", "@dagrejs/graphlib"];

function read(path) {
  try {
    return readFileSync(new URL(path, import.meta.url), "utf8");
  } catch {
    return null;
  }
}

// What the MIT licence requires of those who distribute copies.
function licences() {
  const parts = BUNDLED.flatMap((name) => {
    const manifest = read(`node_modules/${name}/package.json`);
    if (!manifest) return [];
    const text = read(`node_modules/${name}/LICENSE`) || read(`node_modules/${name}/LICENSE.md`) ||
      read("node_modules/@dagrejs/dagre/LICENSE");
    const { version, license } = JSON.parse(manifest);
    return [`==== ${name} ${version} (${license})\n\n${text.trim()}\n`];
  });
  return "The dashboard of weir (app.js, app.css) has parts of these libraries in it.\n\n" + parts.join("\n");
}

export default defineConfig({
  root: "src",
  base: "/",
  publicDir: "public",
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    outDir: "../dist",
    emptyOutDir: true,
    target: ["chrome123", "firefox121", "safari17.5"],
    modulePreload: false,
    assetsInlineLimit: 0,
    rollupOptions: {
      output: { entryFileNames: "app.js", assetFileNames: "app[extname]", codeSplitting: false },
    },
  },
  plugins: [{
    name: "weir-dist",
    generateBundle() {
      this.emitFile({ type: "asset", fileName: "LICENSES.txt", source: licences() });
    },
    transformIndexHtml: (html) => html.replaceAll(" crossorigin", ""),
  }],
});
