// One key per answer. A key is taken by what is printed on it; where the keyboard has other
// letters (Cyrillic, say), by its place.

import { TILE_CODES, TILE_KEYS } from "./board.js";

/**
 * @param {object} does `tile(place, unsure)`, and a function for every command by its key.
 * @param {() => boolean} asking whether a question is in view: tiles and answers need one.
 */
export function listen(does, asking) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.defaultPrevented || document.querySelector("dialog[open]")) return;
    const target = event.target;
    if (target instanceof HTMLElement && target.closest("input, textarea, select, canvas")) return;

    const command = commandOf(event);
    const place = tileOf(event);
    if (place >= 0 && asking()) {
      event.preventDefault();
      if (!event.repeat) does.tile(place, event.shiftKey);
    } else if (command && (does.anywhere.has(command) || asking())) {
      // Enter on a button or a link that has the focus is a press of that one.
      const pressing = target instanceof HTMLElement && target.closest("a, button:not(.choose)");
      if (command === "Enter" && pressing) return;
      event.preventDefault();
      if (!event.repeat) does.commands[command]();
    }
  });

  function tileOf(event) {
    if (event.key === "?") return -1;
    const printed = TILE_KEYS.indexOf(event.key.toLowerCase());
    if (printed >= 0) return printed;
    if (does.commands[event.key.toLowerCase()]) return -1;
    return TILE_CODES.indexOf(event.code);
  }

  function commandOf(event) {
    for (const name of [event.key, event.key.toLowerCase()]) {
      if (does.commands[name]) return name;
    }
    if (/^[a-z]$/i.test(event.key) || event.key.length !== 1) return null;
    const placed = /^Key([A-Z])$/.exec(event.code)?.[1].toLowerCase();
    return placed && does.commands[placed] ? placed : null;
  }
}
