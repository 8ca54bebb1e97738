// What the page says: aloud to those who listen, and in a corner with a way back.

const STAY = 5000;
const STAY_WITH_UNDO = 10_000;

const aloud = document.querySelector("#say");
const toast = document.querySelector("#toast");
const toastText = document.querySelector("#toast-text");
const toastUndo = document.querySelector("#toast-undo");

let timer = 0;
let undo = null;

/** For screen readers alone. */
export function say(text) {
  aloud.textContent = aloud.textContent === text ? `${text}\u00a0` : text;
}

/** For everybody, for some seconds; `takeBack` is offered as "Undo". */
export function tell(text, takeBack = null) {
  undo = takeBack;
  toastText.textContent = text;
  toastUndo.hidden = !takeBack;
  toast.hidden = false;
  clearTimeout(timer);
  timer = setTimeout(hush, takeBack ? STAY_WITH_UNDO : STAY);
}

export function hush() {
  toast.hidden = true;
  undo = null;
}

toastUndo.addEventListener("click", () => {
  const takeBack = undo;
  hush();
  takeBack?.();
});

/** Opens a sheet. The sheet itself takes the focus, not the button that closes it. */
export function openSheet(sheet) {
  if (!sheet.open) sheet.showModal();
  sheet.focus();
}

/** "1 grid", "2 grids", "1,234 grids". */
export function count(number, unit) {
  return `${number.toLocaleString("en")} ${unit}${number === 1 ? "" : "s"}`;
}
