// Draw a digit, and see what a machine sees in it.

import { colour, rgb } from "./drawing.js";
import { format } from "./plane.js";

const $ = (id) => document.getElementById(id);
const pad = $("pad");
const SIDE = 28;
const PAD = 280; // the drawing has ten units for a pixel of the machine
const PEN = 22;
// Strokes of the digits 0 to 9 on a square from 0 to 1, for the keyboard.
const STROKES = [
  [[[.5, .16], [.32, .24], [.27, .5], [.34, .78], [.5, .86], [.66, .77], [.73, .5], [.67, .23], [.5, .16]]],
  [[[.4, .28], [.53, .16], [.53, .86]]],
  [[[.3, .3], [.4, .18], [.6, .18], [.68, .34], [.55, .54], [.3, .84], [.72, .84]]],
  [[[.32, .2], [.55, .15], [.68, .28], [.6, .45], [.45, .49], [.64, .54], [.7, .72], [.54, .86], [.3, .8]]],
  [[[.56, .15], [.28, .6], [.75, .6]], [[.6, .4], [.58, .87]]],
  [[[.68, .17], [.36, .17], [.34, .45], [.56, .43], [.69, .58], [.66, .78], [.5, .86], [.3, .79]]],
  [[[.6, .15], [.4, .36], [.31, .64], [.38, .82], [.55, .86], [.67, .72], [.6, .57], [.44, .57], [.33, .7]]],
  [[[.28, .18], [.72, .18], [.56, .5], [.46, .86]]],
  [[[.5, .48], [.35, .38], [.36, .22], [.52, .15], [.66, .24], [.63, .38], [.5, .48], [.33, .62], [.35, .8], [.52, .86], [.68, .77], [.66, .6], [.5, .48]]],
  [[[.66, .3], [.52, .17], [.36, .26], [.36, .43], [.52, .5], [.66, .38], [.66, .3], [.63, .6], [.54, .86]]],
];

let connection, say, strokes = [], drawing = false, answer = null, ready = false, opened = false, shownExample = 0;
const pen = { x: 0.5, y: 0.5, down: false, visible: false };

export function start(link, speak) {
  connection = link;
  say = speak;
  connection.on("digit", show);
  connection.on("error:digit", refuse);
  connection.on("digits-state", showState);
  pad.addEventListener("pointerdown", (event) => {
    pad.setPointerCapture(event.pointerId);
    drawing = true;
    pen.visible = false;
    strokes.push([where(event)]);
    strokeChanged(true);
  });
  pad.addEventListener("pointermove", (event) => {
    if (!drawing) return;
    for (const e of event.getCoalescedEvents?.() || [event]) strokes[strokes.length - 1].push(where(e));
    strokeChanged(true);
  });
  const end = () => { if (drawing) { drawing = false; strokeChanged(false); } };
  pad.addEventListener("pointerup", end);
  pad.addEventListener("pointercancel", end);
  pad.addEventListener("keydown", keys);
  $("pad-clear").onclick = clear;
  $("pad-example").onclick = () => { write(shownExample); shownExample = (shownExample + 1) % 10; };
}

export function open() {
  opened = true;
  render();
  connection.ask("digits-state", {});
}
export function close() { opened = false; }

function showState(found) {
  ready = found.ready;
  const notice = $("pad-notice");
  notice.hidden = ready && !found.failure;
  notice.textContent = found.failure || "The machine is being trained on 3,000 digits. It takes some seconds, once.";
  if (!ready) { if (opened) setTimeout(() => connection.ask("digits-state", {}), 300); return; }
  if (found.name) $("digit-model").textContent = `${found.name}: ${found.n_support.toLocaleString("en")} support vectors, ${found.converged ? "converged" : "not converged"}.`;
  if (strokes.length) strokeChanged(false);
}

function where(event) {
  const box = pad.getBoundingClientRect();
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height];
}

function clear() {
  strokes = [];
  answer = null;
  pen.down = false;
  render();
  showEmpty();
}

export function write(digit) {
  strokes = STROKES[digit].map((line) => line.map((p) => [...p]));
  strokeChanged(false);
}

function strokeChanged(isGesture) {
  render();
  if (!ready) return;
  const pixels = normalized();
  if (pixels) connection.ask("digit", { pixels }, isGesture);
}

function paint(context, size, ink) {
  context.strokeStyle = context.fillStyle = ink;
  context.lineWidth = (PEN * size) / PAD;
  context.lineCap = context.lineJoin = "round";
  for (const line of strokes) {
    context.beginPath();
    context.moveTo(line[0][0] * size, line[0][1] * size);
    // Curves through the middles of the segments round off the corners.
    for (let k = 1; k < line.length - 1; k += 1) {
      const [x, y] = line[k], [nextX, nextY] = line[k + 1];
      context.quadraticCurveTo(x * size, y * size, ((x + nextX) / 2) * size, ((y + nextY) / 2) * size);
    }
    const [x, y] = line[line.length - 1];
    context.lineTo(x * size + 0.1, y * size);
    context.stroke();
  }
}

// As in MNIST: the digit fills a box of 20 pixels, and its centre of mass is in the
// middle of 28 by 28.
function normalized() {
  const large = document.createElement("canvas");
  large.width = large.height = PAD;
  const context = large.getContext("2d", { willReadFrequently: true });
  context.fillStyle = "#000";
  context.fillRect(0, 0, PAD, PAD);
  paint(context, PAD, "#fff");
  const data = context.getImageData(0, 0, PAD, PAD).data;
  let left = PAD, right = -1, top = PAD, bottom = -1;
  for (let r = 0; r < PAD; r += 1) for (let c = 0; c < PAD; c += 1) {
    if (data[4 * (r * PAD + c)] > 40) {
      left = Math.min(left, c); right = Math.max(right, c);
      top = Math.min(top, r); bottom = Math.max(bottom, r);
    }
  }
  if (right < 0) return null;
  const extent = Math.max(right - left, bottom - top, 30) + 1;
  // Halving twice first averages over all ink: one large step would skip pixels.
  const scale = 20 / extent;
  const smaller = (source, size, x, y, w, h, factor) => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = size;
    const to = canvas.getContext("2d", { willReadFrequently: true });
    to.fillStyle = "#000";
    to.fillRect(0, 0, size, size);
    to.imageSmoothingEnabled = true;
    to.imageSmoothingQuality = "high";
    const wide = w * factor, high = h * factor;
    to.drawImage(source, x, y, w, h, (size - wide) / 2, (size - high) / 2, wide, high);
    return canvas;
  };
  const w = right - left + 1, h = bottom - top + 1;
  const half = smaller(large, 112, left, top, w, h, 4 * scale);
  const small = smaller(smaller(half, 56, 0, 0, 112, 112, 0.5), SIDE, 0, 0, 56, 56, 0.5);
  const found = small.getContext("2d").getImageData(0, 0, SIDE, SIDE).data;
  const grey = Array.from({ length: SIDE * SIDE }, (_, k) => found[4 * k]);
  let mass = 0, mx = 0, my = 0;
  grey.forEach((v, k) => { mass += v; mx += v * (k % SIDE); my += v * Math.floor(k / SIDE); });
  const dx = Math.round((SIDE - 1) / 2 - mx / mass), dy = Math.round((SIDE - 1) / 2 - my / mass);
  return grey.map((_, k) => {
    const c = (k % SIDE) - dx, r = Math.floor(k / SIDE) - dy;
    return c >= 0 && c < SIDE && r >= 0 && r < SIDE ? grey[r * SIDE + c] : 0;
  });
}

function refuse(found) {
  if (!strokes.length) { showEmpty(); return; }
  $("pad-notice").hidden = false;
  $("pad-notice").textContent = found.message;
}

function showEmpty() {
  $("answer").querySelector("b").textContent = "?";
  $("answer").querySelector("span").textContent = "Draw a digit.";
  $("bars").textContent = "";
  $("nearest").textContent = "";
  $("shares").tBodies[0].textContent = "";
  for (const id of ["upright", "hog"]) { const c = $(id); c.getContext("2d").clearRect(0, 0, c.width, c.height); }
}

function show(found) {
  if (!strokes.length) return;
  answer = found;
  $("pad-notice").hidden = true;
  const scores = [...found.arrays.scores];
  const top = Math.max(...scores), low = found.is_probability ? 0 : Math.min(...scores);
  const winner = found.classes.indexOf(found.winner);
  const second = [...scores.keys()].filter((k) => k !== winner).sort((i, j) => scores[j] - scores[i])[0];
  const shown = (v) => (found.is_probability ? `${(100 * v).toFixed(1)} %` : format(v));
  const said = `${shown(top)}${found.is_probability ? " sure" : " is its decision value"}; the next is ${found.classes[second]} with ${shown(scores[second])}.`;
  const box = $("answer");
  box.querySelector("b").textContent = found.winner;
  box.querySelector("span").textContent = said;
  const bars = $("bars");
  bars.textContent = "";
  found.classes.forEach((name, k) => {
    const row = document.createElement("div");
    row.setAttribute("role", "listitem");
    if (k === winner) row.className = "best";
    const label = document.createElement("span"), track = document.createElement("span"), bar = document.createElement("u"), value = document.createElement("em");
    label.textContent = name;
    bar.style.width = `${(100 * (scores[k] - low)) / ((found.is_probability ? 1 : top - low) || 1)}%`;
    value.textContent = found.is_probability ? `${(100 * scores[k]).toFixed(1)} %` : format(scores[k]);
    track.append(bar);
    row.append(label, track, value);
    bars.append(row);
  });
  const nearest = $("nearest");
  nearest.textContent = "";
  found.nearest.forEach((one, k) => {
    const figure = document.createElement("figure");
    if (found.arrays.pictures) {
      const canvas = document.createElement("canvas");
      grey(canvas, found.arrays.pictures.subarray(k * SIDE * SIDE, (k + 1) * SIDE * SIDE));
      figure.append(canvas);
    }
    const caption = document.createElement("figcaption");
    const name = document.createElement("b"), weight = document.createElement("span");
    name.textContent = `a ${one.class}`;
    weight.textContent = `${one.coefficient >= 0 ? "+" : "−"}${Math.abs(one.coefficient).toFixed(2)}`;
    weight.className = one.coefficient >= 0 ? "for" : "against";
    weight.title = `Kernel value ${format(one.similarity)}, coefficient ${format(one.coefficient)} for ${found.winner}`;
    caption.append(name, weight);
    figure.append(caption);
    nearest.append(figure);
  });
  const body = $("shares").tBodies[0];
  body.textContent = "";
  for (const kernel of found.kernels) {
    const row = body.insertRow();
    row.insertCell().textContent = kernel.kernel;
    row.insertCell().textContent = kernel.weight.toFixed(3);
    row.insertCell().textContent = `${kernel.adds >= 0 ? "+" : "−"}${Math.abs(kernel.adds).toFixed(2)}`;
  }
  grey($("upright"), found.arrays.upright);
  drawHog($("hog"), found.arrays.hog);
}

function grey(canvas, values) {
  canvas.width = canvas.height = SIDE;
  const context = canvas.getContext("2d");
  const image = context.createImageData(SIDE, SIDE);
  const low = [12, 15, 22], high = [255, 255, 255];
  values.forEach((v, k) => {
    for (let c = 0; c < 3; c += 1) image.data[4 * k + c] = low[c] + (v / 255) * (high[c] - low[c]);
    image.data[4 * k + 3] = 255;
  });
  context.putImageData(image, 0, 0);
}

// In every cell, a line for each direction of strokes; it is brighter where there are more.
function drawHog(canvas, values) {
  const [cells, , bins] = values.shape;
  const size = 420, cell = size / cells;
  canvas.width = canvas.height = size;
  const context = canvas.getContext("2d");
  context.fillStyle = "#0c0f16";
  context.fillRect(0, 0, size, size);
  const [r, g, b] = rgb("#7ab8ff");
  context.lineWidth = 3.2;
  context.lineCap = "round";
  for (let row = 0; row < cells; row += 1) for (let column = 0; column < cells; column += 1) for (let bin = 0; bin < bins; bin += 1) {
    const v = values[(row * cells + column) * bins + bin];
    if (v < 0.02) continue;
    // A stroke runs at a right angle to its gradient.
    const angle = (Math.PI * (bin + 0.5)) / bins + Math.PI / 2;
    const x = (column + 0.5) * cell, y = (row + 0.5) * cell, h = 0.44 * cell;
    context.strokeStyle = `rgba(${r}, ${g}, ${b}, ${Math.min(1, v)})`;
    context.beginPath();
    context.moveTo(x - h * Math.cos(angle), y - h * Math.sin(angle));
    context.lineTo(x + h * Math.cos(angle), y + h * Math.sin(angle));
    context.stroke();
  }
}

function keys(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const moves = { ArrowLeft: [-0.04, 0], ArrowRight: [0.04, 0], ArrowUp: [0, -0.04], ArrowDown: [0, 0.04] };
  pen.visible = true;
  if (moves[event.key]) {
    pen.x = Math.min(Math.max(pen.x + moves[event.key][0], 0.05), 0.95);
    pen.y = Math.min(Math.max(pen.y + moves[event.key][1], 0.05), 0.95);
    if (pen.down) { strokes[strokes.length - 1].push([pen.x, pen.y]); strokeChanged(false); }
  } else if (event.key === " ") {
    pen.down = !pen.down;
    if (pen.down) { strokes.push([[pen.x, pen.y]]); strokeChanged(false); }
    say(pen.down ? "Pen down" : "Pen up");
  } else if (event.key === "Delete" || event.key === "Backspace") clear();
  else if (/^[0-9]$/.test(event.key)) write(Number(event.key));
  else return;
  event.preventDefault();
  render();
}

export function render() {
  if ($("digits").hidden) return;
  const ratio = window.devicePixelRatio || 1;
  const size = Math.round(pad.clientWidth * ratio);
  pad.width = pad.height = size;
  const context = pad.getContext("2d");
  context.fillStyle = colour("--plane");
  context.fillRect(0, 0, size, size);
  context.strokeStyle = colour("--grid");
  context.lineWidth = ratio;
  for (const at of [1 / 3, 2 / 3]) {
    context.beginPath();
    context.moveTo(at * size, 0); context.lineTo(at * size, size);
    context.moveTo(0, at * size); context.lineTo(size, at * size);
    context.stroke();
  }
  paint(context, size, colour("--ink"));
  if (pen.visible) {
    context.strokeStyle = colour("--accent");
    context.lineWidth = 2 * ratio;
    context.beginPath();
    context.arc(pen.x * size, pen.y * size, (PEN * size) / PAD / 2 + 3, 0, 2 * Math.PI);
    context.stroke();
  }
}

export function svg() {
  const lines = strokes.map((line) => `<polyline points="${line.map((p) => p.map((v) => (1000 * v).toFixed(1)).join(",")).join(" ")}" fill="none" stroke="${colour("--ink")}" stroke-width="${(1000 * PEN) / PAD}" stroke-linecap="round" stroke-linejoin="round"/>`);
  const title = answer ? `A drawn ${answer.winner}` : "A drawing";
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1000 1000" role="img" aria-label="${title}"><title>${title}</title><rect width="1000" height="1000" fill="${colour("--plane")}"/>${lines.join("")}</svg>`;
}
