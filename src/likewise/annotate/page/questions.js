// Questions that are fetched, with their pictures, before they are needed.

import { get, serverTime, sized } from "./api.js";

/** How many questions wait ready: more would survive a longer gap in the network, but each was
 * chosen without knowing the answers given since. */
const AHEAD = 2;

export const KINDS = ["grid", "pair", "outliers"];

export class Questions {
  constructor() {
    this.ready = Object.fromEntries(KINDS.map((kind) => [kind, []]));
    this.filling = {};
    this.pictures = new WeakMap(); // of every question, loaded and decoded before it is shown
  }

  /** The next question, or null where nothing is left to ask. */
  async next(kind) {
    const question = this.take(kind) ?? (await this.#fetch(kind));
    this.fill(kind);
    return question;
  }

  /** A question that is here already. Where there is a network, one whose lease has ended is left
   * to others. */
  take(kind) {
    const list = this.ready[kind];
    while (list.length) {
      const question = list.shift();
      if (!navigator.onLine || !expired(question)) return question;
    }
    return null;
  }

  /** Puts a question back that was shown and not answered. */
  putBack(question) {
    this.ready[question.kind].unshift(question);
  }

  /** The pictures of a question, as elements to show. */
  picturesOf(question) {
    return this.pictures.get(question) ?? this.#load(question);
  }

  /** A question about one item. */
  about(kind, key) {
    return this.#fetch(kind, key);
  }

  /** Fetches ahead, in the background. */
  async fill(kind) {
    if (this.filling[kind]) return;
    this.filling[kind] = true;
    try {
      while (this.ready[kind].length < AHEAD) {
        const question = await this.#fetch(kind);
        if (!question) break;
        this.ready[kind].push(question);
      }
    } catch {
      // Whoever needs one will ask, and hear why there is none.
    } finally {
      this.filling[kind] = false;
    }
  }

  /** Turns to another kind. What was fetched ahead is forgotten, but for what was looked at: a
   * person may hold four open questions at most. */
  turnTo(kind, shown) {
    for (const other of KINDS) this.ready[other] = other === kind ? this.ready[kind].slice(0, 1) : [];
    if (shown) this.putBack(shown);
  }

  /** For the browser's storage: a page that is loaded again goes on where it was. */
  save() {
    return this.ready;
  }

  restore(saved) {
    for (const kind of KINDS) {
      this.ready[kind] = (saved?.[kind] ?? []).filter((question) => !expired(question));
      for (const question of this.ready[kind]) this.#load(question);
    }
  }

  async #fetch(kind, about) {
    const query = new URLSearchParams({ kind });
    if (about !== undefined) query.set("about", about);
    const question = await get(`/api/question?${query}`);
    if (question) this.#load(question);
    return question;
  }

  #load(question) {
    const load = (image) => {
      const picture = new Image();
      picture.alt = "";
      picture.draggable = false;
      picture.src = image;
      picture.decode().catch(() => {}); // a broken one shows as such
      return picture;
    };
    const made = {
      exemplar: question.exemplar && load(sized(question.exemplar.image, 480)),
      tiles: question.tiles.map((tile) => load(tile.image)),
    };
    this.pictures.set(question, made);
    return made;
  }
}

function expired(question) {
  return question.expires < serverTime() + 10;
}
