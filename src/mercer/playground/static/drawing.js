// What all parts draw: shadings, contour lines, points, charts. A picture is a list of
// shapes, so that the same picture goes onto a canvas and into an SVG file.

export const PLANE = 3; // the plane reaches from -3 to 3
const SIZE = 1000; // pictures are 1000 units wide

const SHAPES = ["circle", "square", "triangle", "diamond", "down", "hexagon"];

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
export const classColour = (k) => colour(`--class-${k}`);

export function rgb(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

export const toUnit = (v) => ((v + PLANE) / (2 * PLANE)) * SIZE;
export const toUnitY = (v) => ((PLANE - v) / (2 * PLANE)) * SIZE;

// The outline of a marker as points around (x, y).
function outline(shape, x, y, r) {
  const polygon = (n, turn, scale) => Array.from({ length: n }, (_, k) => {
    const angle = turn + (2 * Math.PI * k) / n;
    return [x + scale * r * Math.cos(angle), y + scale * r * Math.sin(angle)];
  });
  if (shape === "square") return polygon(4, Math.PI / 4, 1.2);
  if (shape === "triangle") return polygon(3, -Math.PI / 2, 1.3);
  if (shape === "diamond") return polygon(4, 0, 1.3);
  if (shape === "down") return polygon(3, Math.PI / 2, 1.3);
  return polygon(6, 0, 1.15);
}

export function marker(label, x, y, r, style) {
  const shape = SHAPES[label] || "circle";
  if (shape === "circle") return { kind: "circle", x, y, r, ...style };
  return { kind: "polygon", x, y, points: outline(shape, x, y, r), ...style };
}

// Marching squares: the segments of the line on which a square grid has a value. The
// segments are in units of the picture.
export function contour(field, n, level) {
  const segments = [];
  const step = SIZE / (n - 1);
  const cut = (a, b) => (level - a) / (b - a);
  for (let r = 0; r < n - 1; r += 1) {
    for (let c = 0; c < n - 1; c += 1) {
      const at = r * n + c;
      const a = field[at], b = field[at + 1], d = field[at + n], e = field[at + n + 1];
      const code = (a > level ? 1 : 0) | (b > level ? 2 : 0) | (e > level ? 4 : 0) | (d > level ? 8 : 0);
      if (code === 0 || code === 15) continue;
      const top = () => [(c + cut(a, b)) * step, r * step];
      const right = () => [(c + 1) * step, (r + cut(b, e)) * step];
      const bottom = () => [(c + cut(d, e)) * step, (r + 1) * step];
      const left = () => [c * step, (r + cut(a, d)) * step];
      const add = (p, q) => segments.push([p[0], p[1], q[0], q[1]]);
      switch (code) {
        case 1: case 14: add(left(), top()); break;
        case 2: case 13: add(top(), right()); break;
        case 3: case 12: add(left(), right()); break;
        case 4: case 11: add(right(), bottom()); break;
        case 6: case 9: add(top(), bottom()); break;
        case 7: case 8: add(left(), bottom()); break;
        default: {
          const middle = (a + b + d + e) / 4 > level;
          if ((code === 5) === middle) { add(left(), bottom()); add(top(), right()); }
          else { add(left(), top()); add(right(), bottom()); }
        }
      }
    }
  }
  return joined(segments);
}

// Join segments end to end, so that dashes run along the line.
function joined(segments) {
  const key = (x, y) => `${x.toFixed(2)},${y.toFixed(2)}`;
  const ends = new Map();
  segments.forEach((s, k) => {
    for (const at of [key(s[0], s[1]), key(s[2], s[3])]) {
      if (!ends.has(at)) ends.set(at, []);
      ends.get(at).push(k);
    }
  });
  const used = new Uint8Array(segments.length);
  const lines = [];
  const extend = (line) => {
    for (;;) {
      const [x, y] = line[line.length - 1];
      const next = (ends.get(key(x, y)) || []).find((k) => !used[k]);
      if (next === undefined) return;
      used[next] = 1;
      const s = segments[next];
      line.push(key(s[0], s[1]) === key(x, y) ? [s[2], s[3]] : [s[0], s[1]]);
    }
  };
  segments.forEach((s, k) => {
    if (used[k]) return;
    used[k] = 1;
    const line = [[s[0], s[1]], [s[2], s[3]]];
    extend(line);
    line.reverse();
    extend(line);
    lines.push(line);
  });
  return lines;
}

// A picture of n x n nodes; paint(k) gives red, green, blue and strength of a node.
export function shading(n, paint) {
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = n;
  const context = canvas.getContext("2d");
  const image = context.createImageData(n, n);
  const base = rgb(colour("--plane"));
  for (let k = 0; k < n * n; k += 1) {
    const [r, g, b, strength] = paint(k);
    image.data[4 * k] = base[0] + strength * (r - base[0]);
    image.data[4 * k + 1] = base[1] + strength * (g - base[1]);
    image.data[4 * k + 2] = base[2] + strength * (b - base[2]);
    image.data[4 * k + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  return { kind: "image", canvas, n };
}

export function axes() {
  const shapes = [];
  const ink = colour("--grid");
  for (let v = -2; v <= 2; v += 1) {
    const at = toUnit(v);
    shapes.push({ kind: "line", points: [[at, 0], [at, SIZE]], stroke: ink, width: v === 0 ? 2.4 : 1.2 });
    shapes.push({ kind: "line", points: [[0, at], [SIZE, at]], stroke: ink, width: v === 0 ? 2.4 : 1.2 });
  }
  return shapes;
}

export function fit(canvas) {
  const ratio = Math.min(window.devicePixelRatio || 1, 3);
  const width = Math.max(1, Math.round(canvas.clientWidth * ratio));
  const height = Math.max(1, Math.round(canvas.clientHeight * ratio));
  if (canvas.width !== width || canvas.height !== height) {
    canvas.width = width;
    canvas.height = height;
  }
  return canvas.getContext("2d");
}

export function draw(canvas, shapes) {
  const context = fit(canvas);
  const scale = canvas.width / SIZE;
  // Markers do not shrink with the picture on a phone.
  const thick = Math.max(1, 620 / Math.max(canvas.clientWidth, 1));
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.fillStyle = colour("--plane");
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.lineJoin = context.lineCap = "round";
  for (const shape of shapes) {
    if (shape.kind === "image") {
      context.imageSmoothingEnabled = true;
      context.imageSmoothingQuality = "high";
      const n = shape.n;
      context.drawImage(shape.canvas, 0.5, 0.5, n - 1, n - 1, 0, 0, SIZE, SIZE);
      continue;
    }
    context.beginPath();
    if (shape.kind === "circle") context.arc(shape.x, shape.y, shape.r * thick, 0, 2 * Math.PI);
    else {
      // Markers have a middle; other polygons are areas, which keep their size.
      const points = shape.x === undefined ? shape.points : grown(shape, thick);
      points.forEach(([x, y], k) => (k ? context.lineTo(x, y) : context.moveTo(x, y)));
      if (shape.kind === "polygon") context.closePath();
    }
    context.globalAlpha = shape.opacity ?? 1;
    if (shape.fill) { context.fillStyle = shape.fill; context.fill(); }
    if (shape.stroke) {
      context.setLineDash(shape.dash || []);
      context.strokeStyle = shape.stroke;
      context.lineWidth = (shape.width || 2) * (shape.kind === "line" ? 1 : thick);
      context.stroke();
      context.setLineDash([]);
    }
    context.globalAlpha = 1;
  }
}

function grown({ x, y, points }, factor) {
  return points.map((p) => [x + factor * (p[0] - x), y + factor * (p[1] - y)]);
}

const escaped = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/"/g, "&quot;");

export function toSvg(shapes, title) {
  const style = (s) => [
    `fill="${s.fill || "none"}"`,
    s.stroke ? `stroke="${s.stroke}" stroke-width="${s.width || 2}"` : "",
    s.dash ? `stroke-dasharray="${s.dash.join(" ")}"` : "",
    s.opacity !== undefined ? `opacity="${s.opacity}"` : "",
  ].filter(Boolean).join(" ");
  const list = (points) => points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" ");
  const body = shapes.map((s) => {
    if (s.kind === "image") {
      const wide = (SIZE * s.n) / (s.n - 1);
      const start = -wide / s.n / 2;
      return `<image x="${start.toFixed(2)}" y="${start.toFixed(2)}" width="${wide.toFixed(2)}" height="${wide.toFixed(2)}" preserveAspectRatio="none" href="${s.canvas.toDataURL("image/png")}"/>`;
    }
    if (s.kind === "circle") return `<circle cx="${s.x.toFixed(1)}" cy="${s.y.toFixed(1)}" r="${s.r}" ${style(s)}/>`;
    if (s.kind === "polygon") return `<polygon points="${list(s.points)}" ${style(s)}/>`;
    return `<polyline points="${list(s.points)}" ${style(s)} stroke-linejoin="round" stroke-linecap="round"/>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${SIZE} ${SIZE}" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    `<rect width="${SIZE}" height="${SIZE}" fill="${colour("--plane")}"/>`,
    ...body, "</svg>",
  ].join("\n");
}

export function drawMatrix(canvas, values, n, counts) {
  canvas.width = canvas.height = Math.max(n, 1);
  const context = canvas.getContext("2d");
  const image = context.createImageData(Math.max(n, 1), Math.max(n, 1));
  const low = rgb(colour("--plane")), high = rgb(colour("--accent"));
  for (let k = 0; k < n * n; k += 1) {
    const t = values[k] / 255;
    for (let c = 0; c < 3; c += 1) image.data[4 * k + c] = low[c] + t * (high[c] - low[c]);
    image.data[4 * k + 3] = 255;
  }
  context.putImageData(image, 0, 0);
  context.fillStyle = colour("--ink");
  context.globalAlpha = 0.3;
  let at = 0;
  for (const count of counts.slice(0, -1)) {
    at += count;
    context.fillRect(at - 0.25, 0, 0.5, n);
    context.fillRect(0, at - 0.25, n, 0.5);
  }
  context.globalAlpha = 1;
}

const shown = (v) => {
  if (v === 0) return "0";
  const size = Math.abs(v);
  if (size >= 1e5 || size < 1e-2) return v.toExponential(0).replace("e", "·10^").replace("^+", "^");
  return String(Number(v.toPrecision(3)));
};
const SUPERS = { "-": "⁻", 0: "⁰", 1: "¹", 2: "²", 3: "³", 4: "⁴", 5: "⁵", 6: "⁶", 7: "⁷", 8: "⁸", 9: "⁹" };
const power = (exponent) => `10${String(exponent).split("").map((c) => SUPERS[c]).join("")}`;

// A chart of several lines. A line is {x, y, stroke, width, dash}.
export function chart(canvas, lines, { log = false, logX = false, low = null, high = null, mark = null, unit = "" } = {}) {
  const context = fit(canvas);
  const ratio = canvas.width / Math.max(canvas.clientWidth, 1);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  context.clearRect(0, 0, width, height);
  const left = 38, right = 6, top = 8, bottom = 18;
  let xHigh = 1, yLow = Infinity, yHigh = -Infinity;
  const usable = (v) => Number.isFinite(v) && (!log || v > 0);
  for (const line of lines) {
    if (line.x.length) xHigh = Math.max(xHigh, line.x[line.x.length - 1]);
    for (const v of line.y) if (usable(v)) { yLow = Math.min(yLow, v); yHigh = Math.max(yHigh, v); }
  }
  if (!Number.isFinite(yLow)) { yLow = log ? 1e-3 : 0; yHigh = 1; }
  if (low !== null) yLow = low;
  if (high !== null) yHigh = Math.max(high, yHigh);
  const f = log ? Math.log10 : (v) => v;
  let a = f(yLow), b = f(yHigh);
  if (!(b - a > 1e-12)) b = a + 1;
  const gx = logX ? (v) => Math.log10(v + 1) : (v) => v;
  const px = (v) => left + (gx(v) / gx(xHigh)) * (width - left - right);
  const py = (v) => top + (1 - (f(v) - a) / (b - a)) * (height - top - bottom);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.fillStyle = colour("--soft");
  context.strokeStyle = colour("--grid");
  context.lineWidth = 1;
  const ticks = [];
  if (log) {
    const every = Math.max(1, Math.ceil((b - a) / 4));
    for (let e = Math.ceil(a); e <= b; e += every) ticks.push([10 ** e, power(e)]);
  } else for (let k = 0; k <= 2; k += 1) { const v = a + ((b - a) * k) / 2; ticks.push([v, `${shown(v)}${unit}`]); }
  context.textAlign = "right";
  for (const [v, text] of ticks) {
    context.beginPath(); context.moveTo(left, py(v)); context.lineTo(width - right, py(v)); context.stroke();
    context.fillText(text, left - 5, py(v));
  }
  context.textAlign = "left";
  context.fillText("0", left, height - 7);
  context.textAlign = "right";
  context.fillText(shown(xHigh), width - right, height - 7);
  context.lineJoin = "round";
  for (const line of lines) {
    context.strokeStyle = line.stroke;
    context.lineWidth = line.width || 2;
    context.globalAlpha = line.opacity ?? 1;
    context.setLineDash(line.dash || []);
    context.beginPath();
    let begun = false;
    for (let k = 0; k < line.x.length; k += 1) {
      const v = line.y[k];
      if (!usable(v)) continue;
      const at = [px(line.x[k]), Math.min(Math.max(py(v), top - 2), height - bottom + 2)];
      if (begun) context.lineTo(...at); else context.moveTo(...at);
      begun = true;
    }
    context.stroke();
    context.setLineDash([]);
    context.globalAlpha = 1;
  }
  if (mark !== null) {
    context.strokeStyle = colour("--ink");
    context.lineWidth = 1;
    context.beginPath(); context.moveTo(px(mark), top); context.lineTo(px(mark), height - bottom); context.stroke();
  }
}
