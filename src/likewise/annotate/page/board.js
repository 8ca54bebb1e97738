// The question on the page: an exemplar and tiles that are chosen, refused or marked unsure.

/** Keys of the tiles: three rows of five, as on the keyboard, and five more for larger grids. The
 * home row is left to commands. */
export const TILE_KEYS = [..."12345qwertzxcvb67890"];

/** A tile's key by its place on the keyboard, for keyboards without these letters. */
export const TILE_CODES = TILE_KEYS.map((key) =>
  /\d/.test(key) ? `Digit${key}` : `Key${key.toUpperCase()}`,
);

const WIDE = 5;
const NARROW = 3;

const TEXTS = {
  grid: "Which are the same kind as this?",
  pair: "Are these two the same kind?",
  outliers: "Which do not belong?",
};

/** Emits "change" when a tile is toggled and "look" ({key}) when one is to be seen larger. */
export class Board extends EventTarget {
  constructor(root) {
    super();
    this.root = root;
    this.box = root.querySelector("#tiles");
    this.title = root.querySelector("#question");
    this.exemplar = root.querySelector("#exemplar");
    this.frame = root.querySelector("#exemplar-frame");
    this.exemplarName = root.querySelector("#exemplar-name");
    this.nothing = root.querySelector("#nothing");
    this.question = null;
    this.clicked = new Set();
    this.unsure = new Set();
    this.tiles = [];
    this.place = 0; // where the arrow keys stand
    this.touched = 0; // the tile that "?" and L are about
    this.box.addEventListener("keydown", (event) => this.#arrows(event));
  }

  /**
   * Shows a question.
   * @param {{exemplar: HTMLImageElement, tiles: HTMLImageElement[]}} pictures loaded already.
   * @param {{clicked: string[], unsure: string[]}} before what was chosen, where it is shown again.
   */
  show(question, pictures, { clicked = [], unsure = [] } = {}) {
    const held = this.box.contains(document.activeElement);
    this.question = question;
    this.clicked = new Set(clicked);
    this.unsure = new Set(unsure);
    this.place = 0;
    this.touched = 0;
    this.root.dataset.kind = question.kind;
    this.root.dataset.question = question.id;
    this.box.removeAttribute("aria-busy");
    this.title.textContent = question.text || TEXTS[question.kind];
    this.nothing.hidden = true;
    this.title.classList.remove("unseen");
    this.box.hidden = false;
    this.#showExemplar(question.exemplar, pictures.exemplar);
    this.#lay(question.tiles.length);
    while (this.tiles.length < question.tiles.length) this.tiles.push(this.#makeTile(this.tiles.length));
    const shown = this.tiles.slice(0, question.tiles.length);
    this.box.replaceChildren(...shown.map((tile) => tile.frame));
    question.tiles.forEach((_, place) => {
      this.tiles[place].button.querySelector("img").replaceWith(pictures.tiles[place]);
      this.#paint(place);
    });
    this.box.setAttribute("aria-label", `${question.tiles.length} candidates`);
    if (held) this.focus();
    this.dispatchEvent(new Event("change"));
  }

  /** The next question is on its way, and was not here in time. */
  showWaiting() {
    this.question = null;
    this.root.dataset.question = "";
    this.title.textContent = "Getting the next question";
    this.frame.replaceChildren(new Image());
    for (const { frame, button, badge } of this.tiles) {
      frame.dataset.state = "";
      frame.dataset.key = "";
      button.querySelector("img").replaceWith(new Image());
      badge.textContent = "";
      button.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-label", "On its way");
    }
    this.box.setAttribute("aria-busy", "true");
    this.dispatchEvent(new Event("change"));
  }

  /** Nothing to ask, or nothing to show it with; returns whether that is news. */
  showNothing(title, text) {
    const news = this.nothing.hidden || this.nothing.querySelector("p").textContent !== text;
    this.question = null;
    this.root.dataset.question = "";
    this.clicked.clear();
    this.unsure.clear();
    this.title.textContent = title;
    this.box.hidden = true;
    this.exemplar.hidden = true;
    this.nothing.hidden = false;
    this.title.classList.add("unseen"); // it is said, larger, in the middle
    this.nothing.querySelector("h2").textContent = title;
    this.nothing.querySelector("p").textContent = text;
    this.dispatchEvent(new Event("change"));
    return news;
  }

  /** Chosen, or not chosen any more. */
  toggle(place) {
    const key = this.#key(place);
    if (key === undefined) return;
    if (!this.clicked.delete(key)) this.clicked.add(key);
    this.unsure.delete(key);
    this.#touch(place);
  }

  /** Unsure, or not unsure any more. */
  toggleUnsure(place = this.touched) {
    const key = this.#key(place);
    if (key === undefined) return;
    if (!this.unsure.delete(key)) this.unsure.add(key);
    this.clicked.delete(key);
    this.#touch(place);
  }

  /** Shows the tile that was touched last at full size. */
  look(place = this.touched) {
    const key = this.#key(place);
    if (key !== undefined) this.dispatchEvent(new CustomEvent("look", { detail: { key } }));
  }

  focus() {
    if (this.question) this.tiles[this.place].button.focus({ preventScroll: true });
    else this.root.querySelector("#board").focus({ preventScroll: true });
  }

  rename(name) {
    this.#nameExemplar({ ...this.question.exemplar, name });
  }

  #key(place) {
    return this.question?.tiles[place]?.key;
  }

  #touch(place) {
    this.touched = place;
    this.place = place;
    this.#paintAll();
    this.dispatchEvent(new Event("change"));
  }

  #lay(count) {
    // Two layouts; the style sheet takes the one that fits (see --columns in ask.css).
    for (const [name, most] of [["wide", WIDE], ["narrow", NARROW]]) {
      const columns = Math.max(1, Math.min(most, count));
      this.box.style.setProperty(`--${name}-columns`, String(columns));
      this.box.style.setProperty(`--${name}-rows`, String(Math.ceil(count / columns)));
    }
  }

  #showExemplar(item, picture) {
    this.exemplar.hidden = !item;
    if (!item) return;
    this.frame.replaceChildren(picture);
    this.#nameExemplar(item);
  }

  #nameExemplar(item) {
    this.frame.querySelector("img").alt = `The exemplar: ${item.name ?? item.key}`;
    this.exemplarName.textContent = item.name ?? "Name this kind";
    this.exemplarName.classList.toggle("known", Boolean(item.name));
  }

  // Two buttons in one frame: to choose, and to say that one cannot tell.
  #makeTile(place) {
    const frame = document.createElement("div");
    frame.className = "tile";
    const button = document.createElement("button");
    button.type = "button";
    button.className = "choose";
    const badge = document.createElement("span");
    badge.className = "badge";
    badge.setAttribute("aria-hidden", "true");
    const key = document.createElement("kbd");
    key.textContent = (TILE_KEYS[place] ?? "").toUpperCase();
    key.setAttribute("aria-hidden", "true");
    key.hidden = place >= TILE_KEYS.length;
    button.append(new Image(), badge, key);
    const doubt = document.createElement("button");
    doubt.type = "button";
    doubt.className = "doubt";
    doubt.textContent = "?";
    doubt.tabIndex = -1; // the "?" key does the same
    frame.append(button, doubt);

    button.addEventListener("click", () => this.toggle(place));
    doubt.addEventListener("click", () => this.toggleUnsure(place));
    button.addEventListener("focus", () => {
      this.place = place;
      this.touched = place;
      this.#rove();
    });
    frame.addEventListener("contextmenu", (event) => {
      event.preventDefault(); // the right button, or a long touch
      this.toggleUnsure(place);
    });
    frame.addEventListener("dblclick", (event) => event.preventDefault());
    return { frame, button, badge, doubt };
  }

  #paintAll() {
    this.question.tiles.forEach((_, place) => this.#paint(place));
  }

  #paint(place) {
    const { frame, button, badge, doubt } = this.tiles[place];
    const item = this.question.tiles[place];
    const chosen = this.clicked.has(item.key);
    const unsure = this.unsure.has(item.key);
    frame.dataset.state = chosen ? "chosen" : unsure ? "unsure" : "";
    frame.dataset.key = item.key;
    badge.textContent = chosen ? (this.question.kind === "outliers" ? "✕" : "✓") : unsure ? "?" : "";
    button.setAttribute("aria-pressed", String(chosen));
    const key = TILE_KEYS[place] ? `, key ${TILE_KEYS[place].toUpperCase()}` : "";
    const what = item.name ?? item.key;
    button.setAttribute("aria-label", `${place + 1}${key}: ${what}${unsure ? ", unsure" : ""}`);
    doubt.setAttribute("aria-label", `Unsure about ${place + 1}`);
    doubt.setAttribute("aria-pressed", String(unsure));
    this.#rove();
  }

  #rove() {
    this.tiles.forEach(({ button }, place) => {
      button.tabIndex = place === this.place ? 0 : -1;
    });
  }

  #arrows(event) {
    const count = this.question?.tiles.length ?? 0;
    const columns = getComputedStyle(this.box).gridTemplateColumns.split(" ").length;
    const steps = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -columns, ArrowDown: columns };
    const step = steps[event.key];
    const goal =
      event.key === "Home" ? 0 : event.key === "End" ? count - 1 : this.place + (step ?? NaN);
    if (Number.isNaN(goal) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    if (goal < 0 || goal >= count) return;
    this.place = goal;
    this.tiles[goal].button.focus();
  }
}
