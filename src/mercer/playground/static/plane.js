// The plane: points that the user places, and what a machine makes of them.

import {
  axes, classColour, colour, contour, draw, drawMatrix, marker, PLANE, rgb, shading, toSvg, toUnit, toUnitY,
} from "./drawing.js";
import { changed, machineFields, pointFields, remember, round, state, undo } from "./state.js";

const $ = (id) => document.getElementById(id);
const canvas = $("plane-canvas");
const COARSE = 72, FINE = 140;
const MOST = 3000;
const SMALL = 0.01; // a dual gap, as a share of the objective, that is green
const REACH = 0.17; // how near a pointer must be to a point, on a screen of 600 pixels
const SLIDERS = {
  C: { log: true }, gamma: { log: true }, degree: {}, coef0: {}, nu: {}, epsilon: {}, n_clusters: {},
};
// Which fields a machine has, and which parameters a kernel that is a plain name takes.
const FIELDS = {
  SVC: ["C", "multiclass", "probability"], NuSVC: ["nu", "multiclass", "probability"],
  SVR: ["C", "epsilon"], OneClassSVM: ["nu"], SVDD: ["nu"], KernelKMeans: ["n_clusters"], KernelPCA: [],
};
const TAKES = {
  rbf: ["gamma"], laplacian: ["gamma"], chi2: ["gamma"], poly: ["gamma", "degree", "coef0"],
  polynomial: ["gamma", "degree", "coef0"], sigmoid: ["gamma", "coef0"],
};

let connection, say, answer = null, shapes = [];
let tool = "place", chosen = 0, dragged = null, gesture = null, grabbed = false;
const crosshair = { x: 0, y: 0, visible: false };
const latencies = [];

export const format = (v) => {
  if (v === null || v === undefined) return "∞";
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e5 || size < 1e-3) {
    const [mantissa, exponent] = v.toExponential(1).replace("e+", "e").split("e");
    return `${mantissa}·10${[...exponent].map((c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]).join("")}`.replace("-", "−");
  }
  return String(Number(v.toPrecision(4))).replace("-", "−");
};

export function start(link, speak) {
  connection = link;
  say = speak;
  connection.on("plane", receive);
  connection.on("error:plane", refuse);
  connection.on("toy", takeToy);
  buildClasses();
  buildControls();
  listen();
}

// Ask for a new picture. While the user drags it is coarser.
export function ask(isGesture = false, asked = performance.now()) {
  const message = { ...machineFields(), ...pointFields(), resolution: isGesture ? COARSE : FINE };
  connection.ask("plane", message, isGesture, asked);
}

export function askToy() {
  connection.ask("toy", {
    toy: state.toy, n: state.toyN, n_classes: state.toyClasses, noise: state.toyNoise,
    seed: Math.floor(Math.random() * 2 ** 31),
  });
}

function takeToy({ arrays }) {
  remember();
  state.x = Array.from(arrays.x, round);
  state.y = Array.from(arrays.y, round);
  state.label = Array.from(arrays.label);
  pointsChanged();
}

function pointsChanged(isGesture = false, asked = performance.now()) {
  changed();
  render();
  ask(isGesture, asked);
}

function receive(found) {
  answer = found;
  $("plane-notice").hidden = true;
  const field = $("kernel");
  field.setAttribute("aria-invalid", "false");
  const says = $("kernel-says");
  says.textContent = "";
  render();
  // The picture is on the screen now: that is what the user waits for.
  const waited = performance.now() - (found.asked ?? performance.now());
  if (found.resolution === COARSE) latencies.push(waited);
  if (latencies.length > 60) latencies.shift();
  showFacts(found);
  drawMatrix($("matrix"), found.arrays.matrix, found.arrays.matrix.shape[0], found.matrix_counts);
  $("matrix-range").textContent = `${format(found.matrix_low)} to ${format(found.matrix_high)}`;
  showComponents(found);
  if (found.resolution !== COARSE) announce(found);
}

function refuse(found) {
  const isKernel = found.field === "kernel";
  $("kernel").setAttribute("aria-invalid", String(isKernel));
  $("kernel-says").textContent = isKernel ? found.message : "";
  const notice = $("plane-notice");
  notice.hidden = false;
  notice.textContent = isKernel ? "The kernel cannot be used: see below its field." : found.message;
  if (found.field === "points") answer = null;
  clearFacts(isKernel ? "The kernel cannot be used." : found.message);
  render();
}

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length ? sorted[Math.floor(sorted.length / 2)] : null;
};
export const latency = () => ({ median: median(latencies), count: latencies.length });
export const forgetLatency = () => latencies.splice(0);

function clearFacts(message) {
  $("verdict").dataset.state = "wait";
  $("verdict").querySelector("b").textContent = "No answer";
  $("verdict").querySelector("span").textContent = message;
  $("facts").textContent = "";
  $("matrix-range").textContent = "";
  $("matrix").width = $("matrix").height = 1;
  $("components").hidden = true;
}

function showFacts(found) {
  const rows = [];
  const add = (name, value) => { if (value !== undefined) rows.push([name, value]); };
  if (found.kkt_gap !== undefined) {
    add("KKT gap", format(found.kkt_gap));
    add("Dual gap", format(found.dual_gap));
    add("Objective", format(found.objective));
    add("Iterations", found.n_iter.toLocaleString("en") + (found.n_machines > 1 ? ` in ${found.n_machines} machines` : ""));
    add("Support vectors", `${found.n_support} of ${found.n_points}`);
    if (found.n_bound !== null) add("At the bound", String(found.n_bound));
  }
  if (found.accuracy !== undefined) add("Right on these points", `${(100 * found.accuracy).toFixed(1)} %`);
  if (found.error !== undefined) add("Root mean square error", format(found.error));
  if (found.n_outside !== undefined) add(found.kind === "curve" ? "Outside the tube" : "Outside", String(found.n_outside));
  if (found.inertia !== undefined) {
    add("Inertia", format(found.inertia));
    add("Rounds", String(found.n_iter));
    add("Sizes", found.sizes.join(", "));
  }
  if (found.eigenvalues) {
    add("Largest eigenvalue", format(found.eigenvalues[0]));
    add("Variance of all shown", `${(100 * found.shares.reduce((a, b) => a + b, 0)).toFixed(1)} %`);
    add("Residual", format(found.residual));
  }
  add("Time of the fit", `${found.fit_ms.toFixed(1)} ms`);
  add("Time of the picture", `${found.picture_ms.toFixed(1)} ms`);
  if (latencies.length) add("From drag to boundary", `${median(latencies).toFixed(0)} ms`);
  const list = $("facts");
  list.textContent = "";
  for (const [name, value] of rows) {
    const term = document.createElement("dt");
    const detail = document.createElement("dd");
    term.textContent = name;
    detail.textContent = value;
    detail.dataset.fact = name;
    list.append(term, detail);
  }
  const [grade, word, why] = judged(found);
  const verdict = $("verdict");
  verdict.dataset.state = grade;
  verdict.querySelector("b").textContent = word;
  verdict.querySelector("span").textContent = why;
}

// Whether an answer is good, in a word and in a sentence.
export function judged({ converged, tol, convex, dual_gap: gap, objective }) {
  if (!converged) return ["bad", "Not converged", tol === undefined ? "" : "The gap is larger than the tolerance."];
  if (tol === undefined) return ["good", "Converged", ""];
  if (convex === false) return ["wait", "Converged", "Stationary: this kernel is not positive semi-definite."];
  // A gap means much or little only beside the objective that it bounds.
  const share = gap === 0 ? 0 : gap / Math.abs(objective);
  if (share <= SMALL) return ["good", "Converged", `Optimal to within ${format(100 * share)} % of the objective.`];
  return ["wait", "Converged", `The KKT gap is within the tolerance, but the optimum is known to ${format(100 * share)} % of the objective only.`];
}

function announce(found) {
  const parts = [`${found.machine} on ${found.n_points} points`];
  if (!found.converged) parts.push("not converged");
  if (found.n_support !== undefined) parts.push(`${found.n_support} support vectors, KKT gap ${format(found.kkt_gap)}, ${found.n_iter} iterations`);
  if (found.accuracy !== undefined) parts.push(`${(100 * found.accuracy).toFixed(0)} % right`);
  if (found.sizes) parts.push(`clusters of ${found.sizes.join(", ")}`);
  canvas.setAttribute("aria-label", `The plane. ${parts.join("; ")}`);
  say(parts.join("; "));
}

// The shapes of the picture.
export function picture(found, withCrosshair = true) {
  const list = [];
  const n = found?.resolution;
  if (found?.arrays.field) {
    list.push(shade(found, n));
    list.push(...axes().map((s) => ({ ...s, opacity: 0.55 })));
    list.push(...lines(found, n));
  } else list.push(...axes());
  if (found?.kind === "curve") list.push(...curve(found));
  list.push(...points(found));
  if (withCrosshair && crosshair.visible) {
    const x = toUnit(crosshair.x), y = toUnitY(crosshair.y), ink = colour("--ink");
    list.push({ kind: "line", points: [[x - 22, y], [x + 22, y]], stroke: ink, width: 2.5 });
    list.push({ kind: "line", points: [[x, y - 22], [x, y + 22]], stroke: ink, width: 2.5 });
    if (grabbed) list.push({ kind: "circle", x, y, r: 20, stroke: ink, width: 3, dash: [6, 6] });
  }
  return list;
}

function shade(found, n) {
  const { field, label } = found.arrays;
  const palette = [0, 1, 2, 3, 4, 5].map((k) => rgb(classColour(k)));
  if (found.kind === "many" || found.kind === "clusters") {
    let top = 1e-9;
    for (const v of field) top = Math.max(top, v);
    const scale = found.kind === "many" && found.shows === "probability" ? 1 : Math.min(top, 2);
    return shading(n, (k) => [...palette[label[k]], 0.1 + 0.4 * Math.min(1, field[k] / scale)]);
  }
  if (found.kind === "two") {
    const [a, b] = found.classes.map((c) => palette[c]);
    if (found.shows === "probability") return shading(n, (k) => [...(field[k] > 0.5 ? b : a), Math.abs(2 * field[k] - 1) * 0.55]);
    return shading(n, (k) => [...(field[k] > 0 ? b : a), 0.05 + 0.5 * Math.tanh(0.8 * Math.abs(field[k]))]);
  }
  let low = 0, high = 0;
  for (const v of field) { low = Math.min(low, v); high = Math.max(high, v); }
  const inside = palette[0], outside = found.kind === "novelty" ? rgb(colour("--soft")) : palette[1];
  return shading(n, (k) => (field[k] > 0 ? [...inside, 0.08 + 0.45 * (field[k] / (high || 1))] : [...outside, 0.32 * (field[k] / (low || -1)) + 0.03]));
}

function lines(found, n) {
  const ink = colour("--ink");
  const { field, label } = found.arrays;
  const list = [];
  const add = (values, level, style) => {
    for (const line of contour(values, n, level)) list.push({ kind: "line", points: line, stroke: ink, ...style });
  };
  if (label) {
    const present = [...new Set(label)];
    for (const c of present.length > 1 ? present : []) {
      const signed = Float32Array.from(field, (v, k) => (label[k] === c ? v : -v) || (label[k] === c ? 1e-6 : -1e-6));
      add(signed, 0, { width: 3 });
    }
    return list;
  }
  if (found.kind === "components") {
    for (const level of found.levels) add(field, level, { width: 1.6, opacity: 0.55 });
    return list;
  }
  for (const level of found.margins) add(field, level, { width: 2, dash: [9, 9], opacity: 0.7 });
  for (const level of found.levels) add(field, level, { width: 4 });
  return list;
}

function curve({ arrays, epsilon }) {
  const values = arrays.curve;
  const n = values.length;
  const at = (shift) => Array.from(values, (v, k) => [toUnit(-PLANE + (2 * PLANE * k) / (n - 1)), toUnitY(v + shift)]);
  const accent = colour("--accent");
  return [
    { kind: "polygon", points: [...at(epsilon), ...at(-epsilon).reverse()], fill: accent, opacity: 0.13 },
    { kind: "line", points: at(epsilon), stroke: accent, width: 2, dash: [9, 9] },
    { kind: "line", points: at(-epsilon), stroke: accent, width: 2, dash: [9, 9] },
    { kind: "line", points: at(0), stroke: colour("--ink"), width: 4 },
  ];
}

function points(found) {
  const list = [];
  const fresh = found && found.n_points === state.x.length;
  const { alpha, wrong, cluster } = (fresh && found.arrays) || {};
  const ink = colour("--ink"), paper = colour("--plane");
  const n = state.x.length;
  const r = n > 600 ? 5 : n > 250 ? 6.5 : 9;
  const single = found && (found.kind === "curve" || found.kind === "components" || found.kind === "novelty");
  const order = [...state.x.keys()];
  // Support vectors come last, so that they are not hidden.
  if (alpha) order.sort((i, j) => alpha[i] - alpha[j]);
  for (const k of order) {
    const x = toUnit(state.x[k]), y = toUnitY(state.y[k]);
    const shape = cluster ? cluster[k] : state.label[k];
    const fill = cluster ? classColour(cluster[k]) : classColour(single && found.kind === "curve" ? 0 : state.label[k]);
    const weight = alpha ? Math.min(1, alpha[k]) : 0;
    if (weight > 1e-6) {
      list.push({ kind: "circle", x, y, r: r * (1.25 + 1.05 * Math.sqrt(weight)), fill, opacity: 0.28 });
      list.push({ kind: "circle", x, y, r: r * (1.25 + 1.05 * Math.sqrt(weight)), stroke: ink, width: weight > 0.999 ? 3 : 1.8 });
    }
    list.push(marker(shape, x, y, r, { fill, stroke: paper, width: 1.6 }));
    if (wrong && wrong[k] && found.kind !== "novelty") {
      const d = 0.5 * r;
      list.push({ kind: "line", points: [[x - d, y - d], [x + d, y + d]], stroke: paper, width: 2.6 });
      list.push({ kind: "line", points: [[x - d, y + d], [x + d, y - d]], stroke: paper, width: 2.6 });
    }
  }
  return list;
}

export function render() {
  if ($("plane").hidden) return;
  shapes = picture(answer);
  draw(canvas, shapes);
}
export const svg = () => toSvg(picture(answer, false), `Mercer: ${state.machine}, kernel ${state.kernel}`);

function showComponents(found) {
  const box = $("components");
  box.hidden = found.kind !== "components";
  if (box.hidden) return;
  const [count, side] = found.arrays.thumbnails.shape;
  if (box.children.length !== count) {
    box.textContent = "";
    for (let k = 0; k < count; k += 1) {
      const button = document.createElement("button");
      button.type = "button";
      button.setAttribute("role", "radio");
      button.append(document.createElement("canvas"), document.createElement("span"));
      button.onclick = () => { state.component = k; changed(); ask(); };
      box.append(button);
    }
  }
  const a = rgb(classColour(0)), b = rgb(classColour(1));
  for (let k = 0; k < count; k += 1) {
    const values = found.arrays.thumbnails.subarray(k * side * side, (k + 1) * side * side);
    let top = 1e-12;
    for (const v of values) top = Math.max(top, Math.abs(v));
    const image = shading(side, (i) => [...(values[i] > 0 ? a : b), 0.85 * Math.abs(values[i] / top)]).canvas;
    const small = box.children[k].firstChild;
    small.width = small.height = side;
    small.getContext("2d").drawImage(image, 0, 0);
    box.children[k].lastChild.textContent = `${k + 1}: ${(100 * found.shares[k]).toFixed(0)} %`;
    box.children[k].setAttribute("aria-label", `Component ${k + 1}, ${(100 * found.shares[k]).toFixed(0)} % of the variance`);
    box.children[k].setAttribute("aria-checked", String(k === found.component));
  }
}

// Controls.

function buildClasses() {
  const box = $("classes");
  for (let k = 0; k < 6; k += 1) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "radio");
    button.setAttribute("aria-label", `Class ${k + 1}`);
    button.title = `Class ${k + 1} (key ${k + 1})`;
    const drawing = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    drawing.setAttribute("viewBox", "0 0 40 40");
    drawing.setAttribute("aria-hidden", "true");
    const shape = marker(k, 20, 20, 13, {});
    const name = shape.kind === "circle" ? "circle" : "polygon";
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    if (name === "circle") { element.setAttribute("cx", 20); element.setAttribute("cy", 20); element.setAttribute("r", 13); }
    else element.setAttribute("points", shape.points.map((p) => p.join(",")).join(" "));
    element.style.fill = `var(--class-${k})`;
    drawing.append(element);
    button.append(drawing);
    button.onclick = () => chooseClass(k);
    box.append(button);
  }
  chooseClass(0);
  radioKeys(box);
}

function chooseClass(k) {
  chosen = k;
  [...$("classes").children].forEach((b, i) => {
    b.setAttribute("aria-checked", String(i === k));
    b.tabIndex = i === k ? 0 : -1;
  });
}

function chooseTool(name) {
  tool = name;
  for (const b of document.querySelectorAll("[data-tool]")) {
    b.setAttribute("aria-checked", String(b.dataset.tool === name));
    b.tabIndex = b.dataset.tool === name ? 0 : -1;
  }
}

// Arrow keys walk through a group of radio buttons.
export function radioKeys(box) {
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const buttons = [...box.querySelectorAll("[role=radio]")];
    const next = buttons[(buttons.indexOf(document.activeElement) + step + buttons.length) % buttons.length];
    next.focus();
    next.click();
  });
}

export function showControls() {
  const taken = [...FIELDS[state.machine], ...(TAKES[state.kernel.trim()] || []), "kernel"];
  for (const element of document.querySelectorAll("#plane [data-for]")) element.hidden = !taken.includes(element.dataset.for);
  for (const [name, { log }] of Object.entries(SLIDERS)) {
    $(name).value = log ? Math.log10(state[name]) : state[name];
    $(`${name}-value`).textContent = format(state[name]);
    $(name).setAttribute("aria-valuetext", format(state[name]));
  }
  $("machine").value = state.machine;
  if ($("kernel").value !== state.kernel) $("kernel").value = state.kernel;
  $("probability").checked = state.probability;
  for (const b of document.querySelectorAll("[data-multiclass]")) b.setAttribute("aria-checked", String(b.dataset.multiclass === state.multiclass));
  $("toy").value = state.toy;
  $("toy-n").value = state.toyN;
  $("toy-classes").value = state.toyClasses;
  $("toy-noise").value = state.toyNoise;
  $("toy-noise-value").textContent = state.toyNoise;
}

function settingsChanged(isGesture = false) {
  showControls();
  changed();
  ask(isGesture);
}

function buildControls() {
  for (const b of document.querySelectorAll("[data-tool]")) b.onclick = () => chooseTool(b.dataset.tool);
  chooseTool("place");
  for (const b of document.querySelectorAll("[data-multiclass]")) b.onclick = () => { state.multiclass = b.dataset.multiclass; settingsChanged(); };
  for (const box of document.querySelectorAll("#plane .segments")) radioKeys(box);
  radioKeys($("components"));
  for (const [name, { log }] of Object.entries(SLIDERS)) {
    const slide = (isGesture) => {
      const v = Number($(name).value);
      state[name] = log ? Number((10 ** v).toPrecision(3)) : v;
      settingsChanged(isGesture);
    };
    $(name).oninput = () => slide(true);
    $(name).onchange = () => slide(false);
  }
  $("machine").onchange = () => {
    state.machine = $("machine").value;
    answer = null;
    settingsChanged();
  };
  $("kernel").oninput = () => { state.kernel = $("kernel").value; settingsChanged(); };
  $("probability").onchange = () => { state.probability = $("probability").checked; settingsChanged(); };
  const clamp = (v, low, high, other) => (Number.isFinite(v) ? Math.min(Math.max(Math.round(v), low), high) : other);
  $("toy").onchange = () => {
    state.toy = $("toy").value;
    // The wave has no classes: it is for regression.
    if (state.toy === "wave" && ["SVC", "NuSVC"].includes(state.machine)) state.machine = "SVR";
    showControls();
    changed();
    askToy();
  };
  $("toy-n").onchange = () => { state.toyN = clamp($("toy-n").valueAsNumber, 6, MOST, 120); showControls(); changed(); askToy(); };
  $("toy-classes").onchange = () => { state.toyClasses = clamp($("toy-classes").valueAsNumber, 1, 6, 2); showControls(); changed(); askToy(); };
  $("toy-noise").oninput = () => { state.toyNoise = Number($("toy-noise").value); showControls(); changed(); };
  $("toy-noise").onchange = () => askToy();
  $("toy-make").onclick = () => askToy();
  $("clear").onclick = () => { remember(); state.x = []; state.y = []; state.label = []; pointsChanged(); };
  $("undo").onclick = () => { if (undo()) pointsChanged(); };
  document.querySelector("#plane form").onsubmit = (event) => event.preventDefault();
  showControls();
}

// The pointer and the keyboard on the plane.

function nearest(x, y, reach = Infinity) {
  let best = -1, least = reach * reach;
  for (let k = 0; k < state.x.length; k += 1) {
    const d = (state.x[k] - x) ** 2 + (state.y[k] - y) ** 2;
    if (d < least) { least = d; best = k; }
  }
  return best;
}

const clip = (v) => Math.min(Math.max(v, -PLANE), PLANE);

function place(x, y) {
  if (state.x.length >= MOST) return;
  state.x.push(round(clip(x)));
  state.y.push(round(clip(y)));
  state.label.push(chosen);
}

function remove(k) {
  for (const list of [state.x, state.y, state.label]) list.splice(k, 1);
}

function where(event) {
  const box = canvas.getBoundingClientRect();
  return [
    ((event.clientX - box.left) / box.width) * 2 * PLANE - PLANE,
    PLANE - ((event.clientY - box.top) / box.height) * 2 * PLANE,
  ];
}

const reach = () => REACH * Math.max(1, 600 / canvas.clientWidth) * (state.x.length > 600 ? 0.6 : 1);

function spray(x, y) {
  const spread = 0.16;
  for (let k = 0; k < 2; k += 1) {
    const angle = 2 * Math.PI * Math.random(), r = spread * Math.sqrt(Math.random());
    place(x + r * Math.cos(angle), y + r * Math.sin(angle));
  }
}

function listen() {
  canvas.addEventListener("pointerdown", (event) => {
    const [x, y] = where(event);
    canvas.setPointerCapture(event.pointerId);
    crosshair.visible = false;
    grabbed = false;
    remember();
    const erase = tool === "erase" || event.button === 2;
    gesture = erase ? "erase" : tool === "paint" ? "paint" : "drag";
    if (erase) {
      const k = nearest(x, y, 1.6 * reach());
      if (k >= 0) remove(k);
    } else if (tool === "paint") spray(x, y);
    else {
      dragged = nearest(x, y, reach());
      if (dragged < 0) { place(x, y); dragged = state.x.length - 1; }
    }
    pointsChanged(true);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!gesture) return;
    const [x, y] = where(event);
    const asked = performance.now();
    if (gesture === "erase") {
      const k = nearest(x, y, 1.6 * reach());
      if (k < 0) return;
      remove(k);
    } else if (gesture === "paint") spray(x, y);
    else { state.x[dragged] = round(clip(x)); state.y[dragged] = round(clip(y)); }
    pointsChanged(true, asked);
  });
  const end = () => {
    if (!gesture) return;
    gesture = dragged = null;
    pointsChanged(false);
  };
  canvas.addEventListener("pointerup", end);
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("contextmenu", (event) => event.preventDefault());
  canvas.addEventListener("keydown", keys);
  canvas.addEventListener("blur", () => { crosshair.visible = false; grabbed = false; render(); });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "z" && !$("plane").hidden && event.target.tagName !== "INPUT") {
      event.preventDefault();
      if (undo()) pointsChanged();
    }
  });
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = event.shiftKey ? 0.5 : 0.1;
  const moves = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] };
  const jump = (direction) => {
    if (!state.x.length) return;
    crosshair.at = ((crosshair.at ?? -direction) + direction + state.x.length) % state.x.length;
    crosshair.x = state.x[crosshair.at];
    crosshair.y = state.y[crosshair.at];
    say(`Point ${crosshair.at + 1} of class ${state.label[crosshair.at] + 1} at ${crosshair.x.toFixed(2)}, ${crosshair.y.toFixed(2)}`);
  };
  if (moves[event.key]) {
    crosshair.x = round(clip(crosshair.x + moves[event.key][0]));
    crosshair.y = round(clip(crosshair.y + moves[event.key][1]));
    if (grabbed) {
      state.x[crosshair.at] = crosshair.x;
      state.y[crosshair.at] = crosshair.y;
      crosshair.visible = true;
      event.preventDefault();
      pointsChanged(true);
      clearTimeout(keys.timer);
      keys.timer = setTimeout(() => ask(), 250);
      return;
    }
    say(`${crosshair.x.toFixed(1)}, ${crosshair.y.toFixed(1)}`);
  } else if (event.key === " " || event.key === "Enter") {
    remember();
    place(crosshair.x, crosshair.y);
    crosshair.at = state.x.length - 1;
    pointsChanged();
  } else if (event.key === "Delete" || event.key === "Backspace") {
    const k = nearest(crosshair.x, crosshair.y, 0.5);
    if (k < 0) return;
    remember();
    remove(k);
    grabbed = false;
    crosshair.at = undefined;
    pointsChanged();
  } else if (event.key === "]") jump(1);
  else if (event.key === "[") jump(-1);
  else if (event.key === "m" || event.key === "M") {
    const k = nearest(crosshair.x, crosshair.y, 0.5);
    if (k < 0) return;
    grabbed = !grabbed;
    if (grabbed) remember();
    crosshair.at = k;
    crosshair.x = state.x[k];
    crosshair.y = state.y[k];
    say(grabbed ? `Point ${k + 1} grabbed; arrows move it` : "Point released");
  } else if (event.key === "Escape") grabbed = false;
  else if ("123456".includes(event.key)) { chooseClass(Number(event.key) - 1); say(`Class ${event.key}`); }
  else if ("pse".includes(event.key)) chooseTool({ p: "place", s: "paint", e: "erase" }[event.key]);
  else return;
  event.preventDefault();
  crosshair.visible = true;
  render();
}
