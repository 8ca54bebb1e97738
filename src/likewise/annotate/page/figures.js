// How far one is, and how far all are. Also what is known of the kinds, which others ask for.

const $ = (selector) => document.querySelector(selector);
const BEGINNER = 5; // questions, until which the first steps are explained
const COLORS = [
  "#2f6fde", "#e07b2a", "#0f9b8e", "#db4a8c", "#8b5cf6", "#65a30d",
  "#c99a06", "#dc2626", "#0891b2", "#a16207", "#6d7cf0", "#be185d",
];
const number = (value) => value.toLocaleString("en");

export class Figures extends EventTarget {
  constructor(session) {
    super();
    this.target = session.target;
    this.items = session.items;
    this.classes = [];
    this.colors = new Map(); // by class; one keeps its colour as long as the page is open
    $("#meter-target").style.left = `${100 * session.target}%`;
  }

  show({ mine, team, questions_left: left, accuracy, classes }) {
    // A class goes by its name, or by its place in the list until it has one.
    this.classes = (classes ?? []).map((one, place) => ({ ...one, number: place + 1 }));
    for (const { id } of this.classes) {
      if (!this.colors.has(id)) this.colors.set(id, colorOf(this.colors.size));
    }
    this.#put("#mine", mine.questions, "question");
    this.#put("#team", team.questions, "question");
    $("#mine").parentElement.title = `${number(mine.answers)} yes/no answers`;
    $("#team").parentElement.title = `${number(team.answers)} yes/no answers`;
    $("#first-steps").hidden = mine.questions >= BEGINNER;
    const reached = left === 0;
    const guessed = left !== null && left !== undefined;
    $("#left").textContent = !guessed ? "–" : reached ? "Reached" : `~${number(Math.round(left))}`;
    $("#left-unit").textContent = !guessed ? "not known yet" : reached ? "" : left === 1 ? "question left" : "questions left";
    const known = accuracy !== null && accuracy !== undefined;
    $("#accuracy").textContent = known ? percent(accuracy) : "–";
    $("#target").textContent = known ? `of ${percent(this.target)}` : "not known yet";
    const meter = $("#meter");
    if (known) meter.setAttribute("aria-valuenow", String(Math.round(100 * accuracy)));
    else meter.removeAttribute("aria-valuenow");
    meter.setAttribute("aria-valuetext", known ? percent(accuracy) : "not known yet");
    $("#meter-fill").style.width = known ? `${100 * accuracy}%` : "0";
    meter.classList.toggle("reached", known && accuracy >= this.target);
    this.dispatchEvent(new Event("change"));
  }

  /** The name of a class, or a word for it. */
  nameOf(id) {
    const found = this.classes.find((one) => one.id === id);
    return found ? titleOf(found) : "a kind";
  }

  /** The colour of a class, or null where there is none. */
  colorOf(id) {
    return this.colors.get(id) ?? null;
  }

  #put(selector, value, unit) {
    $(selector).textContent = number(value);
    $(`${selector}-unit`).textContent = value === 1 ? unit : `${unit}s`;
  }
}

export function titleOf({ number, name }) {
  return name || `Kind ${number}`;
}

function colorOf(number) {
  return COLORS[number] ?? `hsl(${(number * 137.5) % 360} 60% 50%)`;
}

function percent(share) {
  const value = 100 * share;
  return `${value >= 99.95 || Number.isInteger(value) ? Math.round(value) : value.toFixed(1)}\u00a0%`;
}
