// Adds to the form of a worker: marks of the changed sections, Ctrl+S to save, and a question
// before changes are lost. Without this script the form works the same.
"use strict";

for (const form of document.querySelectorAll("form[data-edit]")) {
  const bar = form.querySelector(".savebar");
  const says = bar.querySelector("[data-says]");
  const still = says.textContent;
  const state = () => {
    const values = new Map();
    for (const section of form.querySelectorAll("[data-section]")) {
      const fields = [...section.querySelectorAll("input, textarea, select")];
      values.set(section.dataset.section, JSON.stringify(fields.map((f) => f.type === "checkbox" || f.type === "radio" ? f.checked : f.value)));
    }
    return values;
  };
  const first = state();
  let changed = [];
  const look = () => {
    changed = [...state()].filter(([name, value]) => first.get(name) !== value).map(([name]) => name);
    says.textContent = changed.length === 0 ? still : bar.dataset.changed.replace("%s", changed.join(", "));
    bar.classList.toggle("changed", changed.length > 0);
  };
  form.addEventListener("input", look);
  form.addEventListener("change", look);
  form.addEventListener("submit", () => { changed = []; });
  addEventListener("beforeunload", (event) => { if (changed.length > 0) event.preventDefault(); });
  addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      form.requestSubmit();
    }
  });
}
