// Light or dark: the system's choice, unless a choice is stored. Not a module, so that it runs before the first paint.
// Code that draws with its own colours listens to `themechange` on the document.
"use strict";
(() => {
  const root = document.documentElement;
  const KEY = "twinsieve-theme";

  function storedChoice() {
    try {
      return localStorage.getItem(KEY) ?? "";
    } catch {
      return ""; // a browser may forbid storage
    }
  }

  function apply(choice) {
    if (choice === "light" || choice === "dark") root.dataset.theme = choice;
    else delete root.dataset.theme;
    document.dispatchEvent(new Event("themechange"));
  }

  apply(storedChoice());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(storedChoice()));
  document.addEventListener("DOMContentLoaded", () => {
    const select = document.getElementById("theme");
    select.value = root.dataset.theme ?? "";
    select.addEventListener("change", () => {
      try {
        localStorage.setItem(KEY, select.value);
      } catch {
        // then the choice is for this page only
      }
      apply(select.value);
    });
  });
})();
