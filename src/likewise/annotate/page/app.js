// The page, put together.

import { get, getSession, SignedOut } from "./api.js";
import { Asking } from "./asking.js";
import { Figures } from "./figures.js";
import { showHistory } from "./history.js";
import { ItemSheet } from "./item.js";
import { listen } from "./keyboard.js";
import { Kinds } from "./kinds.js";
import { ItemMap } from "./map.js";
import { Naming } from "./naming.js";
import { openStorage, Outbox } from "./outbox.js";
import { KINDS } from "./questions.js";
import { openSheet, say, tell } from "./speak.js";
import { Status } from "./status.js";
import { themeButton } from "./theming.js";

const $ = (selector) => document.querySelector(selector);
const VIEWS = ["ask", "map", "kinds", "history"];
const EVERY = 15_000;
const STATUS_WAIT = 2000;

const storage = openStorage("localStorage");
const tabStorage = openStorage("sessionStorage");
themeButton($("#theme"), storage);
start();

async function start() {
  let session;
  for (;;) {
    try {
      session = await getSession();
      break;
    } catch (error) {
      if (error instanceof SignedOut) return signedOut();
      $("#question").textContent = "Waiting for the server";
      $("#status").dataset.state = "offline";
      $("#status-text").textContent = "Offline";
      await new Promise((done) => setTimeout(done, STATUS_WAIT));
    }
  }
  $("#project").textContent = session.project;
  document.title = session.project ? `${session.project} · Likewise` : "Likewise";
  // One person alone on this machine has nobody to invite.
  $("#to-admin").hidden = !(session.admin && session.shared !== false);

  const outbox = new Outbox(session, storage);
  const figures = new Figures(session);
  new Status(outbox);
  const asking = new Asking(session, outbox, tabStorage);
  const naming = new Naming(outbox, figures, asking);
  const item = new ItemSheet(naming, figures, (key) => {
    go("ask");
    asking.askAbout(key);
  });
  const kinds = new Kinds(outbox, figures, naming, asking);
  const map = new ItemMap((key) => item.open(key), figures);
  const views = {
    ask: () => {},
    map: () => map.open(),
    kinds: () => kinds.open(),
    history: () => showHistory($("#history-list"), asking, () => go("ask")),
  };

  const refresh = async () => {
    try {
      figures.show(await get("/api/progress"));
      outbox.found();
    } catch (error) {
      if (error instanceof SignedOut) signedOut();
      else outbox.lost();
    }
  };
  let soon = 0;
  outbox.addEventListener("saved", ({ detail }) => {
    clearTimeout(soon);
    soon = setTimeout(refresh, 150);
    if (detail.path !== "/api/answers" && current() !== "ask") views[current()]();
  });
  outbox.addEventListener("refused", ({ detail }) => tell(`Not saved: ${detail.why}`));
  setInterval(() => document.hidden || refresh(), EVERY);

  function current() {
    const name = location.hash.slice(1);
    return VIEWS.includes(name) ? name : "ask";
  }
  function show() {
    const name = current();
    for (const view of VIEWS) $(`#view-${view}`).hidden = view !== name;
    for (const link of document.querySelectorAll("[data-view]")) {
      if (link.dataset.view === name) link.setAttribute("aria-current", "page");
      else link.removeAttribute("aria-current");
    }
    asking.inView(name === "ask");
    views[name]();
  }
  function go(name) {
    if (current() === name) show();
    else location.hash = name;
  }
  addEventListener("hashchange", () => {
    show();
    if (current() === "ask") asking.board.focus();
    say($(`#view-${current()} h1`).textContent);
  });

  const help = $("#help");
  $("#help-button").addEventListener("click", () => openSheet(help));
  for (const sheet of document.querySelectorAll("dialog")) {
    sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
  }
  for (const kind of KINDS) {
    $(`.modes [data-kind=${kind}]`).addEventListener("click", () => asking.setKind(kind));
  }
  $("#name-button").addEventListener("click", () => naming.openExemplar());
  asking.board.addEventListener("look", ({ detail }) => item.open(detail.key));
  $("#exemplar-frame").addEventListener("click", () => {
    if (asking.question?.exemplar) item.open(asking.question.exemplar.key);
  });

  const anywhere = { h: () => openSheet(help), m: () => go("map"), k: () => go("kinds"), a: () => go("ask") };
  listen(
    {
      tile: (place, unsure) => asking.pressTile(place, unsure),
      anywhere: new Set(Object.keys(anywhere)),
      commands: {
        ...anywhere,
        Enter: () => asking.submit(),
        Backspace: () => asking.undo(),
        s: () => asking.skip(),
        "?": () => asking.pressUnsure(),
        y: () => asking.verdict("same"),
        n: () => (asking.kind === "pair" ? asking.verdict("different") : naming.openExemplar()),
        l: () => asking.board.look(),
        g: () => asking.setKind("grid"),
        p: () => asking.setKind("pair"),
        o: () => asking.setKind("outliers"),
      },
    },
    () => current() === "ask",
  );

  show();
  refresh();
  outbox.deliver();
  await asking.start();
}

function signedOut() {
  $("#question").textContent = "You are signed out";
  $("#status").dataset.state = "offline";
  $("#status-text").textContent = "Signed out";
  tell("Your invitation has ended or was taken back. Ask whoever invited you for a new link.");
}
