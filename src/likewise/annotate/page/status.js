// Saved, saving or offline: always in view, and in detail on request.

import { count, openSheet, say } from "./speak.js";

const $ = (selector) => document.querySelector(selector);

export class Status {
  constructor(outbox) {
    this.outbox = outbox;
    this.button = $("#status");
    this.text = $("#status-text");
    this.sheet = $("#waiting");
    this.before = "";
    outbox.addEventListener("change", () => this.show());
    this.button.addEventListener("click", () => this.open());
    $("#try-now").addEventListener("click", async () => {
      await outbox.deliverNow();
      this.open();
    });
    this.show();
  }

  show() {
    const { outbox } = this;
    const waiting = outbox.size;
    const refused = outbox.refused().length;
    const words = {
      saved: refused ? `${refused} refused` : "Saved",
      saving: waiting > 1 ? `Saving ${waiting}` : "Saving",
      offline: waiting ? `Offline · ${waiting} waiting` : "Offline",
      "signed-out": waiting ? `Signed out · ${waiting} waiting` : "Signed out",
    };
    this.button.dataset.state = outbox.state === "saved" && refused ? "refused" : outbox.state;
    this.text.textContent = words[outbox.state];
    this.button.title = this.#detail();
    if (outbox.state !== this.before) {
      if (outbox.state === "offline") say(`Offline. ${this.#detail()}`);
      if (this.before === "offline" && outbox.state === "saved") say("Back online, all is saved.");
      if (outbox.state !== "saving") this.before = outbox.state;
    }
  }

  open() {
    $("#waiting-text").textContent = this.#detail();
    const items = this.outbox.refused().map(({ path, why }) => {
      const item = document.createElement("li");
      item.textContent = `${path.replace("/api/", "")}: ${why}`;
      return item;
    });
    $("#refused").replaceChildren(...items);
    openSheet(this.sheet);
  }

  #detail() {
    const waiting = this.outbox.size;
    if (this.outbox.state === "signed-out") {
      return `Your invitation has ended. ${count(waiting, "fact")} stay in this browser until you join again.`;
    }
    if (waiting) {
      return `${count(waiting, "fact")} not confirmed yet: kept in this browser, and sent until the server has them.`;
    }
    return this.outbox.state === "offline"
      ? "The server cannot be reached. Nothing is waiting."
      : "All that you said is on the server's disk.";
  }
}
