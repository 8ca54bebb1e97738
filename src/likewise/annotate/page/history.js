// What one said, newest first, each with a way back.

import { pastActs } from "./acts.js";
import { imageOf } from "./api.js";
import { count } from "./speak.js";

const MOST_PICTURES = 6;

/** @param {() => void} goAsk shows the question that was taken back. */
export async function showHistory(list, asking, goAsk) {
  let acts;
  try {
    acts = await pastActs();
  } catch {
    list.replaceChildren(note("The server cannot be reached: what waits here is not listed."));
    return;
  }
  if (!acts.length) {
    list.replaceChildren(note("Nothing yet."));
    return;
  }
  list.replaceChildren(...acts.map((act) => entry(act, asking, goAsk)));
}

function entry(act, asking, goAsk) {
  const item = document.createElement("li");
  const pictures = document.createElement("div");
  pictures.className = "pictures";
  for (const key of keysOf(act).slice(0, MOST_PICTURES + 1)) {
    const image = document.createElement("img");
    image.src = imageOf(key);
    image.alt = "";
    image.loading = "lazy";
    pictures.append(image);
  }
  const text = document.createElement("p");
  const what = document.createElement("span");
  what.textContent = sentence(act);
  const time = document.createElement("time");
  const when = new Date(1000 * act.when);
  time.dateTime = when.toISOString();
  time.textContent = when.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  text.append(what, time);
  const back = document.createElement("button");
  back.type = "button";
  back.className = "button quiet";
  back.textContent = act.question ? "Change" : "Take back";
  back.setAttribute("aria-label", `${back.textContent}: ${what.textContent}`);
  back.addEventListener("click", () => {
    asking.takeBack(act);
    if (act.question) goAsk();
    else item.remove();
  });
  item.append(pictures, text, back);
  return item;
}

function keysOf(act) {
  if (act.kind === "name") return [act.body.item];
  if (act.kind === "split") return [act.body.from, ...act.body.items];
  const first = act.question.exemplar ? [act.question.exemplar.key] : [];
  return [...first, ...act.clicked];
}

function sentence(act) {
  if (act.kind === "name") return `Named “${act.body.name}”`;
  if (act.kind === "split") return `${count(act.body.items.length, "item")} split off`;
  if (act.skipped) return "Skipped";
  const { kind, tiles } = act.question;
  const unsure = act.unsure.length ? `, ${act.unsure.length} unsure` : "";
  if (kind === "pair") return act.clicked.length ? "The same kind" : act.unsure.length ? "Unsure" : "Different kinds";
  const how = kind === "grid" ? "the same kind" : "did not belong";
  return `${act.clicked.length} of ${tiles.length} ${how}${unsure}`;
}

function note(text) {
  const item = document.createElement("li");
  item.className = "note";
  item.textContent = text;
  return item;
}
