// What was said and is not known to be saved. Every fact is written into the browser's storage
// before the page goes on, is sent in order, and is removed when the server has confirmed it. A
// fact that arrives twice has the same id and counts once, so that sending again is always right.

import { post, newId, Refused, SignedOut } from "./api.js";

const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** Emits "change" when `state` or the number of waiting facts changes, "saved" after a delivery
 * and "refused" when the server said no to a fact. */
export class Outbox extends EventTarget {
  /**
   * @param {{who: string, project: string}} session whose facts these are: what waits for another
   *   project, or another person, is not sent.
   * @param {Storage} storage
   */
  constructor(session, storage) {
    super();
    const owner = `${encodeURIComponent(session.project)}.${encodeURIComponent(session.who)}`;
    this.prefix = `likewise.outbox.${owner}.`;
    this.refusedPrefix = `likewise.refused.${owner}.`;
    this.storage = storage;
    this.memory = new Map(); // where storage is full or switched off
    this.state = "saved";
    this.sending = false;
    this.wait = FIRST_WAIT;
    this.timer = 0;
    this.last = 0;
    addEventListener("online", () => this.deliverNow());
    addEventListener("offline", () => this.#become("offline"));
    document.addEventListener("visibilitychange", () => {
      if (!document.hidden && this.size) this.deliverNow();
    });
  }

  /** Keeps a fact and begins to send it; returns its id at once. */
  add(path, body) {
    const id = newId();
    const key = this.prefix + String(this.#number()).padStart(12, "0") + "." + id;
    const entry = JSON.stringify({ path, body: { id, ...body } });
    try {
      this.storage.setItem(key, entry);
    } catch {
      this.memory.set(key, entry);
    }
    this.#become(this.state === "offline" ? "offline" : "saving");
    this.deliver();
    return id;
  }

  /** Facts that wait, oldest first, as [key, {path, body}]. */
  waiting() {
    const entries = [...this.#stored(this.prefix), ...this.memory];
    entries.sort(([a], [b]) => (a < b ? -1 : 1));
    return entries.map(([key, text]) => [key, JSON.parse(text)]);
  }

  get size() {
    return this.waiting().length;
  }

  /** Facts that the server said no to, with what it said. They are kept, and not sent again. */
  refused() {
    return this.#stored(this.refusedPrefix).map(([, text]) => JSON.parse(text));
  }

  forgetRefused() {
    for (const [key] of this.#stored(this.refusedPrefix)) this.storage.removeItem(key);
    this.#become(this.state);
  }

  /** Another request got no answer. */
  lost() {
    if (this.state !== "signed-out") this.#become("offline");
  }

  /** Another request got its answer. */
  found() {
    if (this.state === "saved") return;
    if (this.size) this.deliverNow();
    else this.#become("saved");
  }

  deliverNow() {
    this.wait = FIRST_WAIT;
    return this.deliver();
  }

  /** Sends what waits, one after the other, until nothing is left or nobody answers. */
  async deliver() {
    if (this.sending) return;
    this.sending = true;
    clearTimeout(this.timer);
    try {
      for (;;) {
        const [first] = this.waiting();
        if (!first) break;
        if (this.state === "saved") this.#become("saving");
        await this.#sendOne(...first);
        this.wait = FIRST_WAIT;
      }
      this.#become("saved");
    } catch (error) {
      if (error instanceof SignedOut) {
        this.#become("signed-out");
      } else {
        this.#become("offline");
        const wait = Math.max(this.wait, 1000 * (error.wait ?? 0));
        this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
        this.timer = setTimeout(() => this.deliver(), wait);
      }
    } finally {
      this.sending = false;
    }
  }

  async #sendOne(key, { path, body }) {
    try {
      const reply = await post(path, body);
      this.#remove(key);
      this.dispatchEvent(new CustomEvent("saved", { detail: { path, body, reply } }));
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      const why = error.message;
      try {
        this.storage.setItem(this.refusedPrefix + body.id, JSON.stringify({ path, body, why }));
      } catch {
        // The page still says so, below.
      }
      this.#remove(key);
      this.dispatchEvent(new CustomEvent("refused", { detail: { path, body, why } }));
    }
    this.dispatchEvent(new Event("change"));
  }

  #remove(key) {
    this.memory.delete(key);
    this.storage.removeItem(key);
  }

  // Counts on from what is stored: the clock may jump back, and an undo must not overtake.
  #number() {
    const stored = this.waiting().map(([key]) => Number(key.slice(this.prefix.length).split(".")[0]));
    this.last = Math.max(this.last, 0, ...stored) + 1;
    return this.last;
  }

  #stored(prefix) {
    const found = [];
    for (let place = 0; place < this.storage.length; place += 1) {
      const key = this.storage.key(place);
      if (key.startsWith(prefix)) found.push([key, this.storage.getItem(key)]);
    }
    return found.filter(([, text]) => text !== null);
  }

  #become(state) {
    this.state = state;
    this.dispatchEvent(new Event("change"));
  }
}

/** The browser's storage, or one that lasts as long as the page where it is switched off. */
export function openStorage(name) {
  try {
    const storage = globalThis[name];
    storage.setItem("likewise.try", "1");
    storage.removeItem("likewise.try");
    return storage;
  } catch {
    const values = new Map();
    return {
      get length() {
        return values.size;
      },
      key: (place) => [...values.keys()][place] ?? null,
      getItem: (key) => values.get(key) ?? null,
      setItem: (key, value) => void values.set(key, String(value)),
      removeItem: (key) => void values.delete(key),
    };
  }
}
