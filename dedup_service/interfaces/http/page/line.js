// The connection to the server: JSON answers, the event stream, and the state of the connection.
//
// The browser reconnects by itself and sends the id of its last event. It gives up if the answer is no event stream; then
// we find out why, and open the stream again.
const RECONNECT_MS = 5000;
const EVENTS = ["tick", "duplicates", "problem", "removal", "correction", "reset"];

export class TokenNeeded extends Error {}

// Return the JSON at `path`; throw TokenNeeded, or an Error with the server's message.
export async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { accept: "application/json", ...options.headers } });
  const body = await answer.json().catch(() => ({}));
  if (answer.status === 401) throw new TokenNeeded(body.error ?? "this dashboard needs its token");
  if (!answer.ok) throw Object.assign(new Error(body.error ?? `the server answered ${answer.status}`), { status: answer.status });
  return body;
}

// handlers: {state(name, text), tick(data), duplicates(data), …}
export class Line {
  #source = null;
  #last = "";
  #handlers;

  constructor(handlers) {
    this.#handlers = handlers;
  }

  open() {
    const since = this.#last ? `?last_event_id=${encodeURIComponent(this.#last)}` : "";
    const source = (this.#source = new EventSource(`/events${since}`));
    source.onopen = () => this.#handlers.state("connected", "connected");
    source.onerror = () => this.#lost(source);
    for (const name of EVENTS) {
      source.addEventListener(name, (event) => {
        this.#last = event.lastEventId;
        this.#handlers[name]?.(JSON.parse(event.data));
      });
    }
  }

  // last: id of the last event that the loaded figures include.
  since(last) {
    this.#last ||= last ?? "";
  }

  async #lost(source) {
    this.#handlers.state("reconnecting", "connection lost, reconnecting");
    if (source !== this.#source || source.readyState !== EventSource.CLOSED) return;
    try {
      await ask("/api/stats?history=none");
    } catch (error) {
      if (error instanceof TokenNeeded) this.#handlers.state("token", "token needed");
    }
    setTimeout(() => this.open(), RECONNECT_MS);
  }
}
