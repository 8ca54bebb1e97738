// The kinds that were found: named, merged, split.

import { get, imageOf } from "./api.js";
import { titleOf } from "./figures.js";
import { count, openSheet, tell } from "./speak.js";

const $ = (selector) => document.querySelector(selector);
const MOST_SHOWN = 300;

export class Kinds {
  constructor(outbox, figures, naming, asking) {
    this.outbox = outbox;
    this.figures = figures;
    this.naming = naming;
    this.asking = asking;
    this.list = $("#kind-list");
    this.chosen = new Map(); // class id -> class, of those to be merged
    this.kind = null; // whose members are shown
    this.strangers = new Set();
    this.merge = $("#merge");
    this.merge.addEventListener("click", () => this.#merge());
    $("#split").addEventListener("click", () => this.#split());
    figures.addEventListener("change", () => {
      if (!$("#view-kinds").hidden && !this.list.contains(document.activeElement)) this.#draw();
    });
  }

  async open() {
    try {
      this.figures.show(await get("/api/progress"));
    } catch {
      tell("No network: this is what was known before.");
    }
    this.#draw();
  }

  #draw() {
    const classes = [...this.figures.classes].sort((a, b) => b.count - a.count);
    const ids = new Set(classes.map(({ id }) => id));
    for (const id of this.chosen.keys()) if (!ids.has(id)) this.chosen.delete(id);
    $("#kinds-lead").textContent = classes.length
      ? `${count(classes.length, "kind")} found so far. Name them, merge two that are the same, open one to split it.`
      : "No kind is known yet: they are found while you answer.";
    this.list.replaceChildren(...classes.map((one) => this.#card(one)));
    this.#label();
  }

  #card(one) {
    const card = document.createElement("li");
    card.className = "kind";
    const open = document.createElement("button");
    open.type = "button";
    open.className = "kind-open";
    open.setAttribute("aria-label", `Look into ${titleOf(one)}, ${count(one.count, "item")}`);
    const image = document.createElement("img");
    image.src = imageOf(one.exemplar);
    image.alt = "";
    image.loading = "lazy";
    open.append(image);
    open.addEventListener("click", () => this.#openMembers(one));

    const name = document.createElement("button");
    name.type = "button";
    name.className = "kind-name";
    name.textContent = titleOf(one);
    name.classList.toggle("known", Boolean(one.name));
    name.title = "Name this kind";
    name.setAttribute("aria-label", `Name ${titleOf(one)}`);
    name.addEventListener("click", () => this.naming.open(one.exemplar, one.name ?? ""));

    const size = document.createElement("span");
    size.className = "kind-size";
    size.textContent = count(one.count, "item");

    const label = document.createElement("label");
    label.className = "kind-choose";
    const box = document.createElement("input");
    box.type = "checkbox";
    box.checked = this.chosen.has(one.id);
    box.setAttribute("aria-label", `Choose ${titleOf(one)} for a merge`);
    box.addEventListener("change", () => {
      if (box.checked) this.chosen.set(one.id, one);
      else this.chosen.delete(one.id);
      card.classList.toggle("chosen", box.checked);
      this.#label();
    });
    card.classList.toggle("chosen", box.checked);
    label.append(box);
    card.append(open, name, size, label);
    return card;
  }

  #label() {
    const two = [...this.chosen.values()];
    this.merge.disabled = two.length !== 2;
    this.merge.textContent =
      two.length === 2 ? `Merge ${titleOf(two[0])} and ${titleOf(two[1])}` : "Choose two to merge";
  }

  #merge() {
    const [a, b] = this.chosen.values();
    if (!b) return;
    this.chosen.clear();
    const id = this.outbox.add("/api/merge", { a: a.exemplar, b: b.exemplar });
    this.asking.did({ id, kind: "merge", text: `${titleOf(a)} and ${titleOf(b)} are one kind` });
  }

  async #openMembers(one) {
    this.kind = one;
    this.strangers.clear();
    $("#members-title").textContent = `${titleOf(one)} · ${count(one.count, "item")}`;
    $("#member-tiles").replaceChildren();
    this.#labelSplit();
    openSheet($("#members"));
    let points;
    try {
      points = await get("/api/map");
    } catch {
      $("#members").close();
      tell("No network: its items cannot be shown now.");
      return;
    }
    const members = points.filter((point) => point.class === one.id && point.key !== one.exemplar);
    const shown = members.slice(0, MOST_SHOWN);
    $("#members-note").textContent =
      members.length > shown.length
        ? `Choose those that do not belong, and split them off. ${shown.length} of ${members.length} are shown.`
        : "Choose those that do not belong, and split them off.";
    $("#member-tiles").replaceChildren(...shown.map(({ key }) => this.#member(key)));
  }

  #member(key) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "member";
    button.setAttribute("aria-pressed", "false");
    button.setAttribute("aria-label", key);
    const image = document.createElement("img");
    image.src = imageOf(key);
    image.alt = "";
    image.loading = "lazy";
    button.append(image);
    button.addEventListener("click", () => {
      if (!this.strangers.delete(key)) this.strangers.add(key);
      button.setAttribute("aria-pressed", String(this.strangers.has(key)));
      this.#labelSplit();
    });
    return button;
  }

  #labelSplit() {
    const number = this.strangers.size;
    $("#split").disabled = !number;
    $("#split").textContent = number ? `Split off ${count(number, "item")}` : "Split off";
  }

  #split() {
    const items = [...this.strangers];
    if (!items.length) return;
    $("#members").close();
    const id = this.outbox.add("/api/split", { from: this.kind.exemplar, items });
    const text = `${count(items.length, "item")} split off from ${titleOf(this.kind)}`;
    this.asking.did({ id, kind: "split", text });
  }
}
