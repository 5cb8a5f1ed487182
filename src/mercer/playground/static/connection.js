// The connection to the server: requests are JSON, answers are binary (see messages.py).

const TYPES = {
  float32: Float32Array, float64: Float64Array, uint8: Uint8Array, int32: Int32Array,
};
// While the user drags, one request is under way at a time, but not longer than this.
const PATIENCE = 300;

export function unpack(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const text = new TextDecoder().decode(new Uint8Array(buffer, 4, length));
  const values = JSON.parse(text);
  const arrays = {};
  for (const [name, place] of Object.entries(values.arrays)) {
    const count = place.shape.reduce((a, b) => a * b, 1);
    const array = new TYPES[place.dtype](buffer, 4 + length + place.offset, count);
    array.shape = place.shape;
    arrays[name] = array;
  }
  values.arrays = arrays;
  return values;
}

export class Connection {
  constructor(onState) {
    this.onState = onState;
    this.handlers = new Map();
    this.number = 0;
    this.sent = new Map(); // requests that have no answer yet
    this.waiting = new Map();
    this.open = false;
    this.onOpen = [];
    this.connect();
  }

  connect() {
    const scheme = location.protocol === "https:" ? "wss" : "ws";
    this.socket = new WebSocket(`${scheme}://${location.host}/talk`);
    this.socket.binaryType = "arraybuffer";
    this.socket.onmessage = (event) => this.receive(unpack(event.data));
    this.socket.onclose = () => {
      this.open = false;
      this.sent.clear();
      this.waiting.clear();
      this.onState("off");
      setTimeout(() => this.connect(), 1500);
    };
  }

  receive(answer) {
    if (answer.type === "welcome") {
      this.open = true;
      this.onState("on", answer);
      for (const act of this.onOpen) act(answer);
      return;
    }
    const request = this.sent.get(answer.id);
    if (request) {
      Object.assign(answer, { asked: request.asked, request: request.message });
      // Older requests of this kind were replaced, and are not answered any more.
      for (const [id, other] of this.sent) if (other.kind === request.kind && id <= answer.id) this.sent.delete(id);
    }
    this.handlers.get(answer.type)?.(answer);
    if (answer.type === "error") this.handlers.get(`error:${answer.kind}`)?.(answer);
    for (const [kind, next] of [...this.waiting]) {
      this.waiting.delete(kind);
      this.ask(kind, next.message, next.gesture, next.asked);
    }
  }

  on(type, handler) { this.handlers.set(type, handler); }

  // Ask for something. Of requests that are made while the user drags, the newest wins.
  ask(kind, message, gesture = false, asked = performance.now()) {
    if (!this.open) return null;
    const running = [...this.sent.values()].find((request) => request.kind === kind);
    if (gesture && running && performance.now() - running.at < PATIENCE) {
      this.waiting.set(kind, { message, gesture, asked });
      return null;
    }
    this.waiting.delete(kind);
    this.number += 1;
    const id = this.number;
    this.sent.set(id, { kind, message, at: performance.now(), asked });
    this.socket.send(JSON.stringify({ ...message, type: kind, id, gesture }));
    return id;
  }
}
