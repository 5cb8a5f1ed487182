// The frame of the page: parts, connection, theme, address, sharing.

import { Connection } from "./connection.js";
import * as digits from "./digits.js";
import * as plane from "./plane.js";
import * as solvers from "./solvers.js";
import { changed, fromHash, machineFields, onChange, pointFields, state, toHash } from "./state.js";
import * as stream from "./stream.js";

const $ = (id) => document.getElementById(id);
const PARTS = ["plane", "solvers", "stream", "digits", "share"];
const MODULES = { plane, solvers, stream, digits };
let shared = "plane"; // the part that Share is about

// Screen readers are told what has changed, but not with every movement of a drag.
let speech = null;
function say(text) {
  clearTimeout(speech);
  speech = setTimeout(() => { $("says").textContent = text; }, 400);
}

const dark = matchMedia("(prefers-color-scheme: dark)");
function setTheme(name) {
  document.documentElement.dataset.theme = name;
  MODULES[state.part]?.render();
  stream.showControls();
}

// What must not be overlooked: it is shown until it is over, or somebody goes on.
function banner(text) {
  $("banner").hidden = !text;
  $("banner").textContent = text || "";
}

const connection = new Connection((now, welcome) => {
  document.documentElement.dataset.link = now;
  $("link").textContent = now === "on" ? `Mercer ${welcome.version}` : "no connection";
  for (const button of document.querySelectorAll("[data-asks]")) button.disabled = now !== "on";
  if (now === "on") banner("");
  else {
    banner("The server does not answer, so that nothing here is computed any more. Start it again with mercer play: the page connects by itself.");
    MODULES[state.part]?.close?.();
  }
});

plane.start(connection, say);
solvers.start(connection);
stream.start(connection);
digits.start(connection, say);
connection.on("code", (found) => { $("code").textContent = found.code; });
connection.on("error:code", (found) => { $("code").textContent = found.message; });
connection.on("error", (found) => say(found.message));

const CUT = "The link is not complete. Copy it once more, from its beginning to its end.";
const hasPoints = fromHash(location.hash);
setTheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
$("theme").onclick = () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");

let begun = false;
connection.onOpen.push((welcome) => {
  if (!welcome.warm && !begun) {
    $("plane-notice").hidden = false;
    $("plane-notice").textContent = "Compiling for the first time: it takes some seconds, once.";
  }
  plane.showControls();
  if (hasPoints === false && !begun) plane.askToy();
  else plane.ask();
  if (hasPoints === null && !begun) banner(CUT);
  begun = true;
  show(PARTS.includes(state.part) ? state.part : "plane");
});

function show(part) {
  MODULES[state.part]?.close?.();
  if (part !== "share") shared = part;
  state.part = part;
  for (const name of PARTS) {
    $(name).hidden = name !== part;
    const tab = $(`tab-${name}`);
    tab.setAttribute("aria-selected", String(name === part));
    tab.tabIndex = name === part ? 0 : -1;
  }
  changed();
  MODULES[part]?.open?.();
  MODULES[part]?.render();
  if (part === "share") openShare();
}

for (const name of PARTS) $(`tab-${name}`).onclick = () => show(name);
document.querySelector("[role=tablist]").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const next = PARTS[(PARTS.indexOf(state.part) + step + PARTS.length) % PARTS.length];
  show(next);
  $(`tab-${next}`).focus();
});

// Sharing.

function address() {
  // The link opens the part that is shared, not this one.
  const before = state.part;
  state.part = shared;
  const hash = toHash();
  state.part = before;
  return `${location.origin}${location.pathname}${hash}`;
}

function openShare() {
  $("address").value = address();
  $("svg-of").textContent = `The picture of ${$(`tab-${shared}`).textContent}, as an SVG file.`;
  connection.ask("code", {
    part: shared, rule: state.rule, ...machineFields(), ...pointFields(), ...stream.codeFields(),
  });
}
onChange(() => { if (state.part === "share") $("address").value = address(); });

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    // Without permission, the text is selected, ready for Ctrl+C.
    const field = button.id === "copy-link" ? $("address") : $("code");
    if (field.select) field.select();
    else getSelection().selectAllChildren(field);
    button.textContent = "Press Ctrl+C";
  }
  say(button.textContent);
  setTimeout(() => { button.textContent = before; }, 1600);
}
$("copy-link").onclick = () => copy(address(), $("copy-link"));
$("copy-code").onclick = () => copy($("code").textContent, $("copy-code"));
$("save-svg").onclick = () => {
  const file = new Blob([MODULES[shared].svg()], { type: "image/svg+xml" });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(file);
  link.download = `mercer-${shared}.svg`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  say("Saved the picture");
};

// Whoever goes on has read what the banner says.
for (const kind of ["pointerdown", "keydown"]) addEventListener(kind, () => { if (connection.open) banner(""); });

// A new address, such as a pasted link, is a new state.
window.addEventListener("hashchange", () => {
  if (location.hash === toHash()) return;
  const isComplete = fromHash(location.hash);
  banner(isComplete === null ? CUT : "");
  if (isComplete) {
    plane.showControls();
    plane.ask();
    show(PARTS.includes(state.part) ? state.part : "plane");
  }
});
new ResizeObserver(() => MODULES[state.part]?.render()).observe(document.querySelector("main"));

// What tests ask the page.
window.playground = { latency: plane.latency, forgetLatency: plane.forgetLatency, judged: plane.judged, state };
