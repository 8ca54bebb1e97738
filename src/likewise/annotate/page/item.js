// One item, large: what is known of it, and a question from it.

import { get, imageOf } from "./api.js";
import { openSheet, tell } from "./speak.js";

const $ = (selector) => document.querySelector(selector);

export class ItemSheet {
  /** @param {(key: string) => void} ask starts a question from an item. */
  constructor(naming, figures, ask) {
    this.figures = figures;
    this.sheet = $("#item");
    this.key = null;
    this.name = "";
    $("#item-ask").addEventListener("click", () => {
      this.sheet.close();
      ask(this.key);
    });
    $("#item-name").addEventListener("click", () => {
      this.sheet.close();
      naming.open(this.key, this.name);
    });
  }

  async open(key) {
    this.key = key;
    this.name = "";
    $("#item-title").textContent = key;
    $("#item-image").src = imageOf(key, 480);
    $("#item-image").alt = key;
    $("#item-what").textContent = "…";
    openSheet(this.sheet);
    try {
      const item = await get(`/api/item?${new URLSearchParams({ key })}`);
      if (this.key !== key) return;
      this.name = item.name ?? "";
      const known = item.class !== null && item.class !== undefined;
      $("#item-what").textContent = item.name ?? (known ? this.figures.nameOf(item.class) : "Nobody has placed it yet.");
    } catch (error) {
      if (this.key !== key) return;
      this.sheet.close();
      tell(error.status === 404 ? `There is no item “${key}”.` : "The item cannot be looked up now.");
    }
  }
}
