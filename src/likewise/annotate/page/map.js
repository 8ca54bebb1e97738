// The items in two dimensions, coloured by what is known. Near enough, they are pictures.

import { get, imageOf } from "./api.js";
import { titleOf } from "./figures.js";
import { count, say } from "./speak.js";
import { Viewpoint } from "./viewpoint.js";

const $ = (selector) => document.querySelector(selector);
const PICTURES = 70; // at most so many are drawn as pictures
const REACH = 18; // pixels from which a point is meant
const DRAG = 5; // pixels after which a press is a drag
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class ItemMap {
  /** @param {(key: string) => void} open shows an item. */
  constructor(open, figures) {
    this.openItem = open;
    this.figures = figures;
    this.canvas = $("#map-canvas");
    this.here = $("#map-here");
    this.points = [];
    this.pictures = new Map();
    this.view = new Viewpoint();
    this.selected = null;
    this.only = undefined; // the class that stands out, null for "not placed", undefined for none
    this.pointers = new Map();
    this.#listen();
    new ResizeObserver(() => this.#draw()).observe(this.canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
    addEventListener("themechange", () => this.#draw());
    figures.addEventListener("change", () => $("#view-map").hidden || this.#legend());
  }

  async open() {
    $("#map-lead").textContent = this.points.length ? "" : "Loading";
    let points;
    try {
      points = await get("/api/map");
    } catch {
      $("#map-lead").textContent = "The map cannot be loaded now.";
      return;
    }
    this.points = points;
    this.view.enclose(points);
    if (this.selected) this.selected = points.find(({ key }) => key === this.selected.key) ?? null;
    const known = points.filter((point) => point.class !== null).length;
    const all = this.figures.items > points.length ? ` of ${this.figures.items.toLocaleString("en")}` : "";
    $("#map-lead").textContent = `${count(points.length, "item")}${all}, ${known.toLocaleString("en")} placed. Near ones look alike to the model.`;
    $("#map-keys").replaceChildren(...points.slice(0, 500).map(({ key }) => new Option(key)));
    this.#legend();
    this.#draw();
  }

  #legend() {
    const sizes = new Map();
    for (const point of this.points) sizes.set(point.class, (sizes.get(point.class) ?? 0) + 1);
    const rows = this.figures.classes
      .filter(({ id }) => sizes.has(id))
      .sort((a, b) => sizes.get(b.id) - sizes.get(a.id))
      .map((one) => this.#legendRow(one.id, titleOf(one), sizes.get(one.id)));
    if (sizes.has(null)) rows.push(this.#legendRow(null, "Not placed yet", sizes.get(null)));
    $("#legend").replaceChildren(...rows);
  }

  #legendRow(id, title, size) {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("aria-pressed", String(this.only === id));
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    if (id !== null) swatch.style.background = this.figures.colorOf(id);
    const name = document.createElement("span");
    name.textContent = title;
    const number = document.createElement("span");
    number.className = "number";
    number.textContent = size.toLocaleString("en");
    button.append(swatch, name, number);
    button.addEventListener("click", () => {
      this.only = this.only === id ? undefined : id;
      for (const other of $("#legend").querySelectorAll("button")) other.setAttribute("aria-pressed", "false");
      button.setAttribute("aria-pressed", String(this.only === id));
      this.#draw();
    });
    item.append(button);
    return item;
  }

  #listen() {
    const { canvas, view } = this;
    canvas.addEventListener("keydown", (event) => this.#key(event));
    canvas.addEventListener("focus", () => this.selected || this.#select(this.#nearestTo(view.middle(), Infinity)));
    canvas.addEventListener("pointerdown", (event) => {
      canvas.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
      this.pressed = { x: event.offsetX, y: event.offsetY };
      this.dragged = this.pointers.size > 1;
    });
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    const release = (event) => {
      if (!this.pointers.delete(event.pointerId) || this.dragged || event.type !== "pointerup") return;
      const point = this.#nearestTo([event.offsetX, event.offsetY], REACH);
      if (!point) return;
      this.#select(point);
      this.openItem(point.key);
    };
    canvas.addEventListener("pointerup", release);
    canvas.addEventListener("pointercancel", release);
    canvas.addEventListener("pointerleave", () => this.#label(this.selected));
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      view.zoom(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
      this.#draw();
    }, { passive: false });
    const zoom = (factor) => () => {
      view.zoom(factor, ...view.middle());
      this.#draw();
    };
    this.commands = { "+": zoom(1.5), "=": zoom(1.5), "-": zoom(1 / 1.5), 0: () => this.#all() };
    $("#map-in").addEventListener("click", zoom(1.5));
    $("#map-out").addEventListener("click", zoom(1 / 1.5));
    $("#map-all").addEventListener("click", () => this.#all());
    $("#map-find").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#find($("#map-key").value.trim());
    });
  }

  #all() {
    this.view.reset();
    this.#draw();
  }

  #find(key) {
    if (!key) return;
    const point = this.points.find((one) => one.key === key) ?? this.points.find((one) => one.key.includes(key));
    if (point) {
      this.#select(point);
      this.view.centre(point, 6);
      this.#draw();
    }
    this.openItem(point?.key ?? key); // an item that is not on the map can be looked up, too
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const direction = DIRECTIONS[event.key];
    if (direction) this.#step(direction);
    else if (event.key === "Enter" || event.key === " ") this.selected && this.openItem(this.selected.key);
    else if (this.commands[event.key]) this.commands[event.key]();
    else return;
    event.preventDefault();
  }

  // The nearest item within 45 degrees of a direction, by what one sees.
  #step([dx, dy]) {
    if (!this.selected) {
      this.#select(this.#nearestTo(this.view.middle(), Infinity));
      return;
    }
    const [x0, y0] = this.view.place(this.selected);
    let best = null;
    let least = Infinity;
    for (const point of this.points) {
      const [x, y] = this.view.place(point);
      const along = (x - x0) * dx + (y - y0) * dy;
      const across = Math.abs((x - x0) * dy) + Math.abs((y - y0) * dx);
      const far = along + 2 * across;
      if (point !== this.selected && along > 0.01 && across <= along && far < least) {
        best = point;
        least = far;
      }
    }
    if (best) this.#select(best);
  }

  #select(point) {
    this.selected = point;
    if (!point) return;
    const [x, y] = this.view.place(point);
    if (x < 20 || y < 20 || x > this.view.width - 20 || y > this.view.height - 20) this.view.centre(point);
    this.#label(point);
    say(this.here.textContent);
    this.#draw();
  }

  #label(point) {
    this.here.textContent = point ? `${point.key} · ${point.class === null ? "not placed yet" : this.figures.nameOf(point.class)}` : "";
  }

  #move(event) {
    const { offsetX: x, offsetY: y } = event;
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const point = this.#nearestTo([x, y], REACH);
      this.canvas.style.cursor = point ? "pointer" : "grab";
      this.#label(point ?? this.selected);
      return;
    }
    if (Math.hypot(x - this.pressed.x, y - this.pressed.y) > DRAG) this.dragged = true;
    if (!this.dragged) return;
    const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
    if (other) {
      const apart = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
      this.view.zoom(apart({ x, y }) / apart(before), other.x, other.y);
    } else {
      this.view.pan(x - before.x, y - before.y);
    }
    this.pointers.set(event.pointerId, { x, y });
    this.#draw();
  }

  #nearestTo([px, py], reach) {
    let best = null;
    let least = reach ** 2;
    for (const point of this.points) {
      const [x, y] = this.view.place(point);
      const far = (x - px) ** 2 + (y - py) ** 2;
      if (far < least) {
        best = point;
        least = far;
      }
    }
    return best;
  }

  #draw() {
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(() => this.#paint());
  }

  #paint() {
    const { canvas, view } = this;
    const { clientWidth: width, clientHeight: height } = canvas;
    if (!width || !height) return;
    const ratio = devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    view.size(width, height);
    const style = getComputedStyle(canvas);
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const seen = [];
    for (const point of this.points) {
      const [x, y] = view.place(point);
      if (x > -40 && y > -40 && x < width + 40 && y < height + 40) seen.push({ point, x, y });
    }
    const stands = ({ point }) => this.only === undefined || point.class === this.only;
    // What is known lies over what is not.
    seen.sort((a, b) => stands(a) - stands(b) || (a.point.class !== null) - (b.point.class !== null));
    const near = seen.length <= PICTURES && view.scale > 1.5;
    const unknown = style.caretColor;
    const radius = Math.min(6, 2.6 + 0.5 * Math.sqrt(view.scale));
    for (const { point, x, y } of seen) {
      const color = this.figures.colorOf(point.class) ?? unknown;
      context.globalAlpha = stands({ point }) ? 1 : 0.12;
      const picture = near && this.#picture(point.key);
      if (picture) {
        const side = 48;
        context.drawImage(picture, x - side / 2, y - side / 2, side, side);
        context.strokeStyle = color;
        context.lineWidth = point.class === null ? 1 : 3;
        context.strokeRect(x - side / 2, y - side / 2, side, side);
      } else {
        context.fillStyle = color;
        context.beginPath();
        context.arc(x, y, point.class === null ? radius * 0.8 : radius, 0, 2 * Math.PI);
        context.fill();
      }
    }
    context.globalAlpha = 1;
    if (this.selected) {
      const [x, y] = view.place(this.selected);
      context.strokeStyle = style.color;
      context.lineWidth = 2;
      context.beginPath();
      context.arc(x, y, near ? 38 : radius + 5, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  // The picture when it is there; it is fetched, and drawn later, when it is not.
  #picture(key) {
    let picture = this.pictures.get(key);
    if (!picture) {
      picture = new Image();
      picture.addEventListener("load", () => this.#draw());
      picture.src = imageOf(key);
      this.pictures.set(key, picture);
    }
    return picture.complete && picture.naturalWidth ? picture : null;
  }
}
