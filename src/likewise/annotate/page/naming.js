// "These are cats": a name for the kind of an item, at any time.

import { imageOf } from "./api.js";
import { titleOf } from "./figures.js";

const $ = (selector) => document.querySelector(selector);

export class Naming {
  constructor(outbox, figures, asking) {
    this.outbox = outbox;
    this.figures = figures;
    this.asking = asking;
    this.sheet = $("#naming");
    this.input = $("#naming-input");
    this.note = $("#naming-note");
    this.item = null;
    this.input.addEventListener("input", () => this.#advise());
    $("#naming-cancel").addEventListener("click", () => this.sheet.close());
    $("#naming-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
  }

  openExemplar() {
    const exemplar = this.asking.question?.exemplar;
    if (exemplar) this.open(exemplar.key, exemplar.name ?? "");
  }

  open(key, name = "") {
    this.item = key;
    $("#naming-image").src = imageOf(key, 480);
    this.input.value = name;
    const known = this.figures.classes.filter((one) => one.name).map((one) => new Option(one.name));
    $("#naming-known").replaceChildren(...known);
    this.#advise();
    this.sheet.showModal();
    this.input.select();
  }

  /** Says a name, of the class of an item. */
  name(key, name) {
    const id = this.outbox.add("/api/name", { item: key, name });
    this.asking.did({ id, kind: "name", text: `Named “${name}”` });
    const { question, board } = this.asking;
    if (question?.exemplar?.key === key) {
      question.exemplar.name = name;
      board.rename(name);
    }
  }

  #advise() {
    const name = this.input.value.trim();
    $("#naming-save").disabled = !name;
    const same = this.figures.classes.find((one) => one.name === name && one.exemplar !== this.item);
    this.note.textContent = same
      ? `There is a kind called ${titleOf(same)} (${same.count} items). If they are the same kind, merge them under Kinds.`
      : "";
  }

  #save() {
    const name = this.input.value.trim();
    if (!name) return;
    this.sheet.close();
    this.name(this.item, name);
  }
}
