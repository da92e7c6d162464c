// The line to the server: answers as JSON, and events as they come, with what state the line is in.
//
// The browser reconnects by itself and says what it had last. It gives up where the answer is no event stream; then we
// ask why, and try again.
const AGAIN_MS = 5000;
const EVENTS = ["tick", "duplicates", "problem", "removal", "correction", "reset"];

export class TokenNeeded extends Error {}

// The JSON at `path`; TokenNeeded, or an Error with the server's own words.
export async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { accept: "application/json", ...options.headers } });
  const found = await answer.json().catch(() => ({}));
  if (answer.status === 401) throw new TokenNeeded(found.error ?? "this dashboard needs its token");
  if (!answer.ok) throw Object.assign(new Error(found.error ?? `the server said ${answer.status}`), { status: answer.status });
  return found;
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

  // last: id of the last event that figures asked for include.
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
    setTimeout(() => this.open(), AGAIN_MS);
  }
}
