// The stream: samples arrive, and machines learn as they come.

import { axes, chart, classColour, colour, contour, draw, marker, rgb, shading, toSvg, toUnit, toUnitY } from "./drawing.js";
import { changed, machineFields, state } from "./state.js";

const $ = (id) => document.getElementById(id);
const COLOURS = { lasvm: "--accent", smo: "--class-2", pa1: "--class-3", pa2: "--class-4" };
const NAMES = { lasvm: "LASVM", smo: "Online SMO", pa1: "PA-I", pa2: "PA-II" };
const KEYS = Object.keys(NAMES);
const SHOWN = 220; // samples that stay on the picture
const WINDOW = 50;
const RESOLUTION = 56;

let connection, playing = false, latest = null, awaited = false, queued = 0, timer = null;
let begunWith = null; // the settings that the server has begun the stream with
let samples = [], wrong = {}, history = {};
const visible = new Set(KEYS);
let first = "lasvm";

export function start(link) {
  connection = link;
  connection.on("stream-started", () => { if (playing) next(); });
  connection.on("stream", receive);
  connection.on("error:stream-step", refuse);
  connection.on("error:stream-start", refuse);
  connection.onOpen.push(() => { begunWith = null; });
  const box = $("learners");
  for (const key of KEYS) {
    const label = document.createElement("label");
    const check = document.createElement("input");
    check.type = "checkbox";
    check.checked = true;
    check.dataset.learner = key;
    check.onchange = () => { if (check.checked) { visible.add(key); first = key; } else visible.delete(key); render(); };
    const line = document.createElement("i");
    line.dataset.colour = COLOURS[key];
    label.append(check, line, NAMES[key]);
    box.append(label);
  }
  $("stream-play").onclick = () => (playing ? pause() : play());
  $("stream-step").onclick = () => { pause(); step(1); };
  $("stream-reset").onclick = () => { pause(); reset(); };
  $("ghost").onchange = render;
  $("concept").onchange = () => { state.concept = $("concept").value; changed(); reset(); };
  for (const name of ["flip", "budget", "speed"]) {
    $(name).oninput = () => { state[name] = Number($(name).value); showControls(); };
    $(name).onchange = () => { changed(); if (name !== "speed") reset(); };
  }
  document.querySelector("#stream form").onsubmit = (event) => event.preventDefault();
}

export function showControls() {
  $("concept").value = state.concept;
  for (const name of ["flip", "budget", "speed"]) $(name).value = state[name];
  $("flip-value").textContent = `${Math.round(100 * state.flip)} %`;
  $("budget-value").textContent = state.budget;
  $("speed-value").textContent = state.speed;
  for (const line of $("learners").querySelectorAll("i")) line.style.background = colour(line.dataset.colour);
}

const settings = () => ({ ...machineFields(), concept: state.concept, flip: state.flip, budget: state.budget });

// Go on with the stream, unless its settings have changed in the meantime.
export function open() {
  showControls();
  if (JSON.stringify(settings()) !== begunWith) reset();
}
export function close() { pause(); }

function reset() {
  latest = null;
  begunWith = JSON.stringify(settings());
  samples = [];
  wrong = Object.fromEntries(KEYS.map((k) => [k, []]));
  history = Object.fromEntries(KEYS.map((k) => [k, { x: [], mistakes: [], held: [], removed: [] }]));
  awaited = false;
  queued = 0;
  $("stream-notice").hidden = true;
  $("stream-says").textContent = "";
  connection.ask("stream-start", settings());
  showPlay();
  showTable();
  render();
}

function refuse(found) {
  pause();
  awaited = false;
  $("stream-notice").hidden = false;
  $("stream-notice").textContent = found.message;
}

function play() {
  playing = true;
  showPlay();
  next();
}
function pause() {
  playing = false;
  clearTimeout(timer);
  showPlay();
}
function showPlay() {
  $("stream-play").textContent = playing ? "Pause" : latest ? "Continue" : "Start";
}

// The next samples are asked for when the last ones have been shown.
function next() {
  if (!playing || awaited) return;
  step(Math.min(25, Math.max(1, Math.round(state.speed / 8))));
}
function step(count) {
  if (awaited) { queued = count; return; }
  awaited = true;
  connection.ask("stream-step", { count, resolution: RESOLUTION });
}

function receive(found) {
  awaited = false;
  latest = found;
  const { x, y, label, wrong: mistakes } = found.arrays;
  const count = x.length;
  for (let k = 0; k < count; k += 1) samples.push([x[k], y[k], label[k]]);
  samples = samples.slice(-SHOWN);
  found.learners.forEach((learner, row) => {
    const recent = wrong[learner.key];
    for (let k = 0; k < count; k += 1) recent.push(mistakes[row * count + k]);
    wrong[learner.key] = recent.slice(-WINDOW);
    const line = history[learner.key];
    line.x.push(found.n_seen);
    line.mistakes.push(wrong[learner.key].reduce((a, b) => a + b, 0) / wrong[learner.key].length);
    line.held.push(learner.held);
    line.removed.push(learner.removed);
  });
  const best = found.learners.reduce((a, b) => (a.mistakes <= b.mistakes ? a : b));
  $("stream-says").textContent = `${found.n_seen} samples. Fewest mistakes: ${best.name}, ${best.mistakes} of ${best.tested}.`;
  showTable();
  render();
  if (queued) { const more = queued; queued = 0; step(more); }
  if (playing) timer = setTimeout(next, (1000 * count) / state.speed - 30);
}

function showTable() {
  const body = $("stream-table").tBodies[0];
  body.textContent = "";
  for (const learner of latest?.learners || KEYS.map((key) => ({ key, name: NAMES[key], mistakes: 0, tested: 0, held: 0, removed: 0 }))) {
    const row = body.insertRow();
    row.dataset.learner = learner.key;
    const name = row.insertCell();
    const dot = document.createElement("i");
    dot.style.background = colour(COLOURS[learner.key]);
    name.append(dot, learner.name);
    row.insertCell().textContent = `${learner.mistakes} of ${learner.tested}`;
    row.insertCell().textContent = learner.held;
    row.insertCell().textContent = learner.removed;
  }
}

function picture() {
  const list = [];
  const paper = colour("--plane");
  if (latest) {
    const { fields, ghost } = latest.arrays;
    const n = fields.shape[1];
    const shadow = visible.has(first) ? first : KEYS.find((key) => visible.has(key));
    const of = (key) => fields.subarray(KEYS.indexOf(key) * n * n, (KEYS.indexOf(key) + 1) * n * n);
    const [a, b] = [0, 1].map((c) => rgb(classColour(c)));
    if (shadow) {
      const field = of(shadow);
      list.push(shading(n, (k) => [...(field[k] > 0 ? b : a), 0.04 + 0.3 * Math.tanh(Math.abs(field[k]))]));
    }
    list.push(...axes().map((s) => ({ ...s, opacity: 0.5 })));
    if (ghost && $("ghost").checked) for (const line of contour(ghost, n, 0)) list.push({ kind: "line", points: line, stroke: colour("--ink"), width: 7, opacity: 0.28, dash: [4, 14] });
    for (const key of KEYS) {
      if (!visible.has(key)) continue;
      for (const line of contour(of(key), n, 0)) list.push({ kind: "line", points: line, stroke: colour(COLOURS[key]), width: key === shadow ? 5 : 3.2 });
    }
  } else list.push(...axes());
  samples.forEach(([x, y, label], k) => {
    // Older samples fade.
    const age = (samples.length - 1 - k) / SHOWN;
    list.push(marker(label, toUnit(x), toUnitY(y), age < 0.03 ? 11 : 8, { fill: classColour(label), stroke: paper, width: 1.4, opacity: 1 - 0.8 * age }));
  });
  return list;
}

export function render() {
  if ($("stream").hidden) return;
  draw($("stream-canvas"), picture());
  const lines = (name) => KEYS.filter((key) => visible.has(key)).map((key) => ({
    x: history[key]?.x || [], y: history[key]?.[name] || [], stroke: colour(COLOURS[key]), width: 2,
  }));
  chart($("mistakes-chart"), lines("mistakes").map((l) => ({ ...l, y: l.y.map((v) => 100 * v) })), { low: 0, high: 20, unit: "%" });
  chart($("held-chart"), lines("held"), { low: 0, high: 10 });
  chart($("removed-chart"), lines("removed"), { low: 0, high: 10 });
}
export const svg = () => toSvg(picture(), `Mercer: ${NAMES[first]} on a stream of ${latest?.n_seen ?? 0} samples`);
export const codeFields = () => ({ learner: first, budget: state.budget });
