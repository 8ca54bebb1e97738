// Before anything is drawn: the colours that this person chose, if any (otherwise the system's).
(() => {
  try {
    const theme = localStorage.getItem("likewise.theme");
    if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
  } catch {
    // Storage is switched off: the system's colours will do.
  }
})();
