// Who answers, how fast and how well; invitations made and taken back.

import { get, getSession, post } from "./api.js";
import { openStorage } from "./outbox.js";
import { themeButton } from "./theming.js";

const $ = (selector) => document.querySelector(selector);
const EVERY = 10_000;

let shared = false; // whether there are invitations at all

themeButton($("#theme"), openStorage("localStorage"));
start().catch(complain);

async function start() {
  // Before anything is waited for: a form without its listener would reload the page.
  $("#invite").addEventListener("submit", async (event) => {
    event.preventDefault();
    const name = $("#invite-name").value.trim();
    try {
      const { link } = await post("/api/admin/people", { name, admin: $("#invite-admin").checked });
      $("#link-name").textContent = name;
      $("#link-text").value = link;
      $("#link").hidden = false;
      $("#link-text").focus();
      $("#link-text").select();
      $("#invite").reset();
      $("#problem").hidden = true;
      await list();
    } catch (error) {
      complain(error);
    }
  });
  $("#copy").addEventListener("click", async () => {
    $("#link-text").select();
    try {
      await navigator.clipboard.writeText($("#link-text").value);
      $("#copy").textContent = "Copied";
    } catch {
      $("#copy").textContent = "Press Ctrl C"; // plain http on another machine has no clipboard
    }
  });

  const session = await getSession();
  $("#project").textContent = session.project;
  shared = session.shared;
  $("#invite").hidden = !shared;
  await list();
  setInterval(() => document.hidden || list().catch(complain), EVERY);
}

async function list() {
  const reply = await get("/api/admin/people");
  const people = Array.isArray(reply) ? reply : reply.people;
  $("#people").replaceChildren(...people.map(row));
}

function row(person) {
  const line = document.createElement("tr");
  const name = document.createElement("th");
  name.scope = "row";
  name.textContent = person.name;
  if (person.admin) {
    const mark = document.createElement("span");
    mark.className = "chip";
    mark.textContent = "admin";
    name.append(" ", mark);
  }
  const ended = person.revoked || (person.expires && person.expires * 1000 < Date.now());
  line.classList.toggle("ended", Boolean(ended));
  line.append(
    name,
    number(person.questions ?? person.answers, (value) => value.toLocaleString("en")),
    number(person.seconds, (value) => value.toFixed(1)),
    number(person.agreement, percent),
    number(person.gold_accuracy, percent),
    cell(invitation(person)),
    revokeCell(person, ended),
  );
  return line;
}

function invitation(person) {
  if (person.revoked) return "taken back";
  if (!shared) return "–";
  if (!person.expires) return "no end";
  const date = new Date(person.expires * 1000).toLocaleDateString("en", { day: "numeric", month: "short" });
  return person.expires * 1000 < Date.now() ? `ended ${date}` : `until ${date}`;
}

function revokeCell(person, ended) {
  const last = cell("");
  if (ended || !shared) return last;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "button quiet small";
  button.textContent = "Revoke";
  button.setAttribute("aria-label", `Revoke the invitation of ${person.name}`);
  button.addEventListener("click", async () => {
    if (button.dataset.sure === undefined) {
      button.dataset.sure = "";
      button.textContent = "Really revoke?";
      return;
    }
    try {
      await post("/api/admin/revoke", { name: person.name });
      await list();
    } catch (error) {
      complain(error);
    }
  });
  last.append(button);
  return last;
}

function number(value, format) {
  const made = cell(value === null || value === undefined ? "–" : format(value));
  made.className = "n";
  return made;
}

function cell(text) {
  const made = document.createElement("td");
  made.textContent = text;
  return made;
}

function percent(share) {
  return `${(100 * share).toFixed(1)} %`;
}

function complain(error) {
  $("#problem").hidden = false;
  $("#problem").textContent = error.message;
}
