// All settings and points, and how they live in the address of the page.

export const DEFAULTS = {
  part: "plane",
  machine: "SVC", kernel: "rbf", gamma: 1, degree: 3, coef0: 1, C: 1, nu: 0.2, epsilon: 0.3,
  multiclass: "ovo", probability: false, n_clusters: 2, component: 0,
  toy: "moons", toyN: 120, toyClasses: 2, toyNoise: 0.14,
  rule: "wss2",
  concept: "turning", flip: 0.05, budget: 100, speed: 30,
};
const MOST_POINTS = 3000;

export const state = { ...DEFAULTS, x: [], y: [], label: [] };

export const round = (v) => Math.round(v * 1000) / 1000;

// The fields of a request that describe the machine.
export function machineFields() {
  const { machine, kernel, gamma, degree, coef0, C, nu, epsilon, multiclass, probability, n_clusters, component } = state;
  return { machine, kernel, gamma, degree, coef0, C, nu, epsilon, multiclass, probability, n_clusters, component };
}
export const pointFields = () => ({ x: state.x, y: state.y, label: state.label });

function toBase64(bytes) {
  let text = "";
  for (let k = 0; k < bytes.length; k += 8192) text += String.fromCharCode(...bytes.subarray(k, k + 8192));
  return btoa(text).replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
}
function fromBase64(text) {
  const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
  return Uint8Array.from(plain, (c) => c.charCodeAt(0));
}

// Five bytes for a point: two coordinates in thousandths, and the class.
function packPoints() {
  const view = new DataView(new ArrayBuffer(5 * state.x.length));
  state.x.forEach((x, k) => {
    view.setInt16(5 * k, Math.round(1000 * x));
    view.setInt16(5 * k + 2, Math.round(1000 * state.y[k]));
    view.setUint8(5 * k + 4, state.label[k]);
  });
  return toBase64(new Uint8Array(view.buffer));
}
function unpackPoints(text, count) {
  const bytes = fromBase64(text);
  const view = new DataView(bytes.buffer);
  const n = bytes.length / 5;
  if (n !== (count ?? Math.floor(n)) || n > MOST_POINTS) throw new Error("the points are not complete");
  const x = [], y = [], label = [];
  for (let k = 0; k < n; k += 1) {
    x.push(view.getInt16(5 * k) / 1000);
    y.push(view.getInt16(5 * k + 2) / 1000);
    label.push(Math.min(view.getUint8(5 * k + 4), 5));
  }
  return { x, y, label };
}

export function toHash() {
  const changed = {};
  for (const [name, value] of Object.entries(DEFAULTS)) if (state[name] !== value) changed[name] = state[name];
  const found = { ...changed, points: state.x.length };
  const settings = toBase64(new TextEncoder().encode(JSON.stringify(found)));
  return `#${settings}.${packPoints()}`;
}

// Take over what an address says; return whether it has points, or null if it is not
// complete. What is not of the right type is left alone, and the server checks all values
// again.
export function fromHash(hash) {
  const [settings, packed] = hash.replace(/^#/, "").split(".");
  if (!settings || document.getElementById(hash.slice(1))) return false;
  try {
    const found = JSON.parse(new TextDecoder().decode(fromBase64(settings)));
    const points = unpackPoints(packed, found.points);
    for (const [name, value] of Object.entries(DEFAULTS)) {
      const given = found[name];
      state[name] = typeof given === typeof value && (typeof given !== "number" || Number.isFinite(given)) ? given : value;
    }
    Object.assign(state, points);
    return true;
  } catch {
    return null;
  }
}

let timer = null;
const listeners = [];
export const onChange = (act) => listeners.push(act);
export function changed() {
  clearTimeout(timer);
  timer = setTimeout(() => {
    history.replaceState(null, "", toHash());
    for (const act of listeners) act();
  }, 250);
}

const past = [];
export function remember() {
  past.push({ x: [...state.x], y: [...state.y], label: [...state.label] });
  if (past.length > 60) past.shift();
}
export function undo() {
  const last = past.pop();
  if (last) Object.assign(state, last);
  return Boolean(last);
}
