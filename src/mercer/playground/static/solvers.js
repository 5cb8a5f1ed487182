// Solvers step by step, and side by side on the same points.

import { axes, chart, classColour, colour, contour, draw, marker, rgb, shading, toSvg, toUnit, toUnitY } from "./drawing.js";
import { format, radioKeys } from "./plane.js";
import { changed, machineFields, pointFields, state } from "./state.js";

const $ = (id) => document.getElementById(id);
const COLOURS = { wss2: "--class-0", wss1: "--class-2", platt: "--class-3", random: "--class-1", decompose: "--class-4" };
const RESOLUTION = 64;

let connection, race = null, moment = null, playing = null, step = 0;

export function start(link) {
  connection = link;
  connection.on("race", receive);
  connection.on("snapshot", show);
  connection.on("error:solvers", refuse);
  connection.on("error:snapshot", refuse);
  $("step").oninput = () => goTo(Number($("step").value), true);
  $("step-next").onclick = () => { pause(); goTo(step + 1); };
  $("step-back").onclick = () => { pause(); goTo(step - 1); };
  $("step-first").onclick = () => { pause(); goTo(0); };
  $("step-last").onclick = () => { pause(); goTo(last()); };
  $("step-play").onclick = () => (playing ? pause() : play());
  radioKeys($("rules"));
  document.querySelector("#solvers form").onsubmit = (event) => event.preventDefault();
}

// Run all solvers on the present points.
export function open() {
  race = moment = null;
  clear();
  notice("Running the solvers …");
  connection.ask("solvers", { ...machineFields(), machine: "SVC", ...pointFields() });
}

export function close() { pause(); }

// Forget what was shown about other points.
function clear() {
  $("rules").textContent = $("step-words").textContent = $("step-value").textContent = "";
  $("race").tBodies[0].textContent = "";
  $("step").value = $("step").max = 0;
}

function notice(text) {
  $("solver-notice").hidden = !text;
  $("solver-notice").textContent = text || "";
}

function refuse(found) {
  notice(found.message);
  render();
}

const chosen = () => race?.solvers.find((s) => s.rule === state.rule) || race?.solvers[0];
const last = () => chosen()?.steps ?? 0;

function receive(found) {
  race = found;
  notice("");
  if (!found.solvers.some((s) => s.rule === state.rule)) state.rule = found.solvers[0].rule;
  const box = $("rules");
  box.textContent = "";
  for (const solver of found.solvers) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "radio");
    button.dataset.rule = solver.rule;
    const line = document.createElement("i");
    line.style.background = colour(COLOURS[solver.rule]);
    const kind = document.createElement("small");
    kind.textContent = solver.kind;
    const count = document.createElement("small");
    count.textContent = `${solver.steps.toLocaleString("en")} ${solver.rule === "decompose" ? "rounds" : "steps"}`;
    button.append(line, solver.name, kind, count);
    button.onclick = () => choose(solver.rule);
    box.append(button);
  }
  const body = $("race").tBodies[0];
  body.textContent = "";
  for (const solver of found.solvers) {
    const row = body.insertRow();
    row.dataset.rule = solver.rule;
    const first = row.insertCell();
    const dot = document.createElement("i");
    dot.style.background = colour(COLOURS[solver.rule]);
    first.append(dot, solver.name);
    row.insertCell().textContent = solver.pair_steps.toLocaleString("en");
    row.insertCell().textContent = solver.looked.toLocaleString("en");
    row.insertCell().textContent = format(solver.gap) + (solver.finished ? "" : " …");
  }
  choose(state.rule, 0);
}

function choose(rule, at = 0) {
  state.rule = rule;
  changed();
  for (const b of $("rules").children) {
    b.setAttribute("aria-checked", String(b.dataset.rule === rule));
    b.tabIndex = b.dataset.rule === rule ? 0 : -1;
  }
  $("step").max = last();
  pause();
  goTo(at);
}

function goTo(to, isGesture = false) {
  step = Math.min(Math.max(to, 0), last());
  $("step").value = step;
  $("step-value").textContent = `${step.toLocaleString("en")} of ${last().toLocaleString("en")}`;
  connection.ask("snapshot", { rule: state.rule, step, resolution: RESOLUTION }, isGesture);
  drawCharts();
}

function play() {
  if (step >= last()) goTo(0);
  $("step-play").textContent = "Pause";
  // Long runs are shown in some ten seconds, short ones step by step.
  const stride = Math.max(1, Math.round(last() / 120));
  playing = setInterval(() => {
    goTo(step + stride, true);
    if (step >= last()) pause();
  }, last() > 40 ? 90 : 350);
}
function pause() {
  clearInterval(playing);
  playing = null;
  $("step-play").textContent = "Play";
}

function show(found) {
  moment = found;
  $("step-words").textContent = found.words;
  render();
}

function picture() {
  const list = [];
  const ink = colour("--ink"), paper = colour("--plane");
  if (!race) return axes();
  const { x, y, label } = race.arrays;
  const classes = [...new Set(label)].sort();
  if (moment) {
    const { field, alpha } = moment.arrays;
    const n = field.shape[0];
    const [a, b] = classes.map((c) => rgb(classColour(c)));
    list.push(shading(n, (k) => [...(field[k] > 0 ? b : a), 0.05 + 0.45 * Math.tanh(0.8 * Math.abs(field[k]))]));
    list.push(...axes().map((s) => ({ ...s, opacity: 0.5 })));
    for (const level of [-1, 1]) for (const line of contour(field, n, level)) list.push({ kind: "line", points: line, stroke: ink, width: 2, dash: [9, 9], opacity: 0.6 });
    for (const line of contour(field, n, 0)) list.push({ kind: "line", points: line, stroke: ink, width: 4 });
    for (let k = 0; k < x.length; k += 1) {
      if (alpha[k] > 1e-6) list.push({ kind: "circle", x: toUnit(x[k]), y: toUnitY(y[k]), r: 9 * (1.25 + 1.05 * Math.sqrt(alpha[k])), stroke: ink, width: alpha[k] > 0.999 ? 3 : 1.8 });
    }
  } else list.push(...axes());
  for (let k = 0; k < x.length; k += 1) list.push(marker(label[k], toUnit(x[k]), toUnitY(y[k]), 9, { fill: classColour(label[k]), stroke: paper, width: 1.6 }));
  if (moment && moment.i !== null) {
    const accent = colour("--class-4");
    const at = (k) => [toUnit(x[k]), toUnitY(y[k])];
    if (moment.members.length) for (const k of moment.members) list.push({ kind: "circle", x: at(k)[0], y: at(k)[1], r: 21, stroke: accent, width: 4 });
    else {
      list.push({ kind: "line", points: [at(moment.j), at(moment.i)], stroke: accent, width: 5 });
      list.push({ kind: "circle", x: at(moment.i)[0], y: at(moment.i)[1], r: 22, stroke: accent, width: 5 });
      list.push({ kind: "circle", x: at(moment.j)[0], y: at(moment.j)[1], r: 22, stroke: accent, width: 5, dash: [7, 7] });
    }
  }
  return list;
}

function drawCharts() {
  if ($("solvers").hidden) return;
  const gaps = [], objectives = [];
  const solvers = race?.solvers || [];
  let best = Infinity;
  for (const s of solvers) for (const v of race.arrays[`${s.rule}_objective`]) best = Math.min(best, v);
  const spread = Math.abs(best) || 1;
  let mark = step;
  for (const s of solvers) {
    const gap = race.arrays[`${s.rule}_gap`], objective = race.arrays[`${s.rule}_objective`];
    // Rounds of working sets are drawn by the pair steps that they are made of.
    const each = s.steps ? s.pair_steps / s.steps : 1;
    const along = Array.from(gap, (_, k) => k * each);
    const style = { x: along, stroke: colour(COLOURS[s.rule]), width: s.rule === state.rule ? 3 : 1.6, opacity: s.rule === state.rule ? 1 : 0.65 };
    if (s.rule === state.rule) mark = step * each;
    gaps.push({ ...style, y: gap });
    objectives.push({ ...style, y: Float32Array.from(objective, (v) => Math.max(v - best, 1e-6 * spread)) });
  }
  const options = { log: true, logX: true, mark: race ? mark : null };
  chart($("gap-chart"), gaps, options);
  chart($("objective-chart"), objectives, options);
}

export function render() {
  if ($("solvers").hidden) return;
  draw($("solver-canvas"), picture());
  drawCharts();
}
export const svg = () => toSvg(picture(), `Mercer: ${state.rule} after ${step} steps`);
