// Light or dark: what the system asks for, unless a choice is remembered. Not a module, so that it runs before the first
// paint. Whoever draws with colours of its own listens to `themechange` on the document.
"use strict";
(() => {
  const root = document.documentElement;
  const KEY = "twinsieve-theme";

  function remembered() {
    try {
      return localStorage.getItem(KEY) ?? "";
    } catch {
      return ""; // a browser may refuse to remember
    }
  }

  function apply(choice) {
    if (choice === "light" || choice === "dark") root.dataset.theme = choice;
    else delete root.dataset.theme;
    document.dispatchEvent(new Event("themechange"));
  }

  apply(remembered());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(remembered()));
  document.addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = root.dataset.theme ?? "";
    select.addEventListener("change", () => {
      try {
        localStorage.setItem(KEY, select.value);
      } catch {
        // then for this page alone
      }
      apply(select.value);
    });
  });
})();
