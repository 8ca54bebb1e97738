// The course of asking: show, submit, take back, go on.

import { pastActs } from "./acts.js";
import { Refused, SignedOut } from "./api.js";
import { Board } from "./board.js";
import { KINDS, Questions } from "./questions.js";
import { count, hush, say, tell } from "./speak.js";
import { Stopwatch } from "./stopwatch.js";
import { describe, NOTHING_LEFT, submitText } from "./wording.js";

const $ = (selector) => document.querySelector(selector);
const RETRY = 3000;
const LOOK_AGAIN = 5000;
const REMEMBERED = 200;

export class Asking {
  constructor(session, outbox, storage) {
    this.outbox = outbox;
    this.storage = storage;
    this.slot = `likewise.board.${session.project}.${session.who}`;
    this.board = new Board($("#view-ask"));
    this.questions = new Questions();
    this.kind = "grid";
    this.question = null;
    this.done = []; // what was said here, as {id, kind, question, clicked, unsure}
    this.later = []; // questions that an undo pushed aside, with what was chosen
    this.older = null; // the same from before this page was opened, from the server
    this.turn = 0;
    this.stopwatch = new Stopwatch();
    this.visible = false;
    this.retry = 0;
    this.waitingForNetwork = false;

    this.board.addEventListener("change", () => this.#label());
    $("#submit").addEventListener("click", () => this.submit());
    $("#skip").addEventListener("click", () => this.skip());
    $("#undo").addEventListener("click", () => this.undo());
    $("#say-same").addEventListener("click", () => this.verdict("same"));
    $("#say-different").addEventListener("click", () => this.verdict("different"));
    $("#say-unsure").addEventListener("click", () => this.verdict("unsure"));
    $("#nothing-button").addEventListener("click", () => this.advance());
    addEventListener("pagehide", () => this.#remember());
    document.addEventListener("visibilitychange", () => this.inView(this.visible));
    outbox.addEventListener("change", () => {
      if (!this.question && outbox.state === "saved" && this.waitingForNetwork) this.advance();
    });
  }

  /** Goes on where this tab was, or begins. */
  async start() {
    const kept = this.#recall();
    if (kept) {
      this.kind = kept.kind;
      this.questions.restore(kept.ready);
      this.later = kept.later ?? [];
      this.done = kept.done ?? [];
      this.#mark();
      if (kept.current) {
        this.#show(kept.current.question, kept.current);
        this.questions.fill(this.kind);
        return;
      }
    }
    this.#mark();
    await this.advance();
  }

  /** Seconds are counted only while the question can be seen. */
  inView(visible) {
    this.visible = visible;
    this.stopwatch.run(visible && !document.hidden);
  }

  setKind(kind) {
    if (kind === this.kind) return;
    this.questions.turnTo(kind, this.question);
    this.question = null;
    this.#setKind(kind);
    this.advance();
  }

  async askAbout(key) {
    const kind = this.kind === "outliers" ? "grid" : this.kind;
    try {
      const question = await this.questions.about(kind, key);
      if (!question) {
        tell("Nothing is left to ask about this item.");
        return;
      }
      if (this.question) this.questions.putBack(this.question);
      this.#setKind(kind);
      this.#show(question);
      this.board.focus();
    } catch (error) {
      tell(error instanceof Refused ? error.message : "No network: this question has to wait.");
    }
  }

  pressTile(place, unsure) {
    if (unsure) this.board.toggleUnsure(place);
    else this.board.toggle(place);
  }

  pressUnsure() {
    if (this.kind === "pair") this.verdict("unsure");
    else this.board.toggleUnsure();
  }

  /** The answer to a pair, in one press. */
  verdict(what) {
    if (this.question?.kind !== "pair") return;
    const { key } = this.question.tiles[0];
    this.board.clicked = new Set(what === "same" ? [key] : []);
    this.board.unsure = new Set(what === "unsure" ? [key] : []);
    this.submit();
  }

  skip() {
    this.board.clicked.clear();
    this.board.unsure.clear();
    this.submit({ skipped: true });
  }

  submit({ skipped = false } = {}) {
    const question = this.question;
    if (!question) return;
    const clicked = question.tiles.map(({ key }) => key).filter((key) => this.board.clicked.has(key));
    const unsure = question.tiles.map(({ key }) => key).filter((key) => this.board.unsure.has(key));
    const id = this.outbox.add("/api/answers", {
      question_id: question.id,
      clicked,
      unsure,
      skipped,
      seconds: this.stopwatch.read(),
      question,
    });
    this.done.push({ id, kind: "answer", question, clicked, unsure });
    this.done.splice(0, this.done.length - REMEMBERED);
    this.question = null;
    hush();
    say(skipped ? "Skipped." : describe(question, clicked.length, unsure.length));
    this.advance();
  }

  /** The next question: what an undo pushed aside, or one that was fetched ahead, or a new one. */
  async advance({ resting = false } = {}) {
    clearTimeout(this.retry);
    this.turn += 1;
    const turn = this.turn;
    const aside = this.later.pop();
    if (aside) {
      this.#setKind(aside.question.kind);
      this.#show(aside.question, aside);
      return;
    }
    const ready = this.questions.take(this.kind);
    if (ready) {
      this.#show(ready);
      this.questions.fill(this.kind);
      return;
    }
    this.waitingForNetwork = false;
    if (!resting) this.board.showWaiting();
    try {
      const question = await this.questions.next(this.kind);
      if (turn !== this.turn) {
        if (question) this.questions.putBack(question);
      } else if (question) {
        this.#show(question);
      } else {
        this.#rest("Nothing left to ask", NOTHING_LEFT[this.kind]);
        // Leases end, others answer, the model is trained again: look again now and then.
        this.retry = setTimeout(() => this.advance({ resting: true }), LOOK_AGAIN);
      }
    } catch (error) {
      if (turn !== this.turn || error instanceof SignedOut) return;
      if (error instanceof Refused) {
        this.#rest("No question", error.message);
      } else {
        const number = this.outbox.size;
        this.#rest(
          "No network",
          number
            ? `${count(number, "answer")} wait${number === 1 ? "s" : ""} in this browser and will be delivered. Questions go on when the server can be reached.`
            : "Questions go on when the server can be reached.",
        );
        this.waitingForNetwork = true;
        this.outbox.lost();
        this.retry = setTimeout(() => this.advance({ resting: true }), RETRY);
      }
    }
  }

  /** Takes the last thing back that this person did. An answer's question is shown again. */
  async undo() {
    const last = this.done.pop() ?? (await this.#beforeThisPage());
    if (!last) {
      tell("There is nothing to take back.");
      return;
    }
    this.takeBack(last);
  }

  /** Takes one thing back: {id, kind, question, clicked, unsure}. */
  takeBack(act) {
    this.done = this.done.filter(({ id }) => id !== act.id);
    this.older = this.older?.filter(({ id }) => id !== act.id) ?? null;
    this.outbox.add("/api/undo", { fact: act.id });
    if (act.kind !== "answer" || !act.question) {
      tell(`Taken back: ${act.text ?? act.kind}.`);
      return;
    }
    if (this.question) {
      const { clicked, unsure } = this.board;
      this.later.push({ question: this.question, clicked: [...clicked], unsure: [...unsure] });
    }
    this.turn += 1;
    clearTimeout(this.retry);
    this.#setKind(act.question.kind);
    this.#show(act.question, act);
    tell("Taken back: change it and submit again.");
  }

  /** Something else was said that can be taken back: a name, a merge, a split. */
  did(act) {
    this.done.push(act);
    tell(act.text, () => this.takeBack(act));
  }

  #show(question, before = {}) {
    this.question = question;
    this.stopwatch.reset();
    this.board.show(question, this.questions.picturesOf(question), before);
    // The button that was pressed has done its work: Enter is for this question now.
    if (document.activeElement?.closest(".modes, .actions, .nothing")) this.board.focus();
  }

  #rest(title, text) {
    this.question = null;
    if (this.board.showNothing(title, text)) say(`${title}. ${text}`);
  }

  #setKind(kind) {
    this.kind = kind;
    this.#mark();
  }

  #mark() {
    $("#view-ask").dataset.kind = this.kind;
    for (const kind of KINDS) {
      $(`.modes [data-kind=${kind}]`).setAttribute("aria-pressed", String(kind === this.kind));
    }
    $("#submit").hidden = this.kind === "pair";
    $("#verdict").hidden = this.kind !== "pair";
  }

  #label() {
    const { question } = this;
    const { clicked, unsure } = this.board;
    for (const button of document.querySelectorAll("#submit, #skip, #verdict button")) {
      button.disabled = !question;
    }
    const doubt = question ? unsure.size : 0;
    $("#submit-text").textContent = question ? submitText(question, clicked.size) : "Submit";
    $("#hint").textContent = doubt ? `${count(doubt, "tile")} unsure` : "";
  }

  async #beforeThisPage() {
    if (!this.older) {
      try {
        const here = new Set(this.done.map(({ id }) => id));
        this.older = (await pastActs()).filter(({ id }) => !here.has(id));
      } catch {
        return null;
      }
    }
    return this.older.shift() ?? null;
  }

  #remember() {
    const current = this.question && {
      question: this.question,
      clicked: [...this.board.clicked],
      unsure: [...this.board.unsure],
    };
    const { kind, later, done } = this;
    const ready = this.questions.save();
    try {
      this.storage.setItem(this.slot, JSON.stringify({ kind, current, later, done, ready }));
    } catch {
      // The page begins anew, then; nothing that was submitted is lost.
    }
  }

  #recall() {
    try {
      const kept = JSON.parse(this.storage.getItem(this.slot) ?? "null");
      this.storage.removeItem(this.slot); // a copy of this tab must not show the same question
      return kept;
    } catch {
      return null;
    }
  }
}
