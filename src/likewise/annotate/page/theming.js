// Light, dark, or as the system.

const ORDER = ["system", "light", "dark"];
const WORDS = { system: "as the system", light: "light", dark: "dark" };

export function themeButton(button, storage) {
  let theme = storage.getItem("likewise.theme") ?? "system";
  const show = () => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    button.setAttribute("aria-label", `Colours: ${WORDS[theme]}`);
    button.title = `Colours: ${WORDS[theme]}`;
    dispatchEvent(new Event("themechange"));
  };
  button.addEventListener("click", () => {
    theme = ORDER[(ORDER.indexOf(theme) + 1) % ORDER.length];
    storage.setItem("likewise.theme", theme);
    show();
  });
  show();
}
