// Adds files to the file field of a form when the user drops them on the form or pastes them into it.
// Shows the names of the chosen files; a click on a name removes the file. Without this script, the
// button of the field adds files.
"use strict";

for (const form of document.querySelectorAll("form[data-drop]")) {
  const field = form.querySelector("input[type=file]");
  const carriesFiles = (event) => event.dataTransfer && [...event.dataTransfer.types].includes("Files");
  const set = (files) => {
    const all = new DataTransfer();
    for (const file of files) all.items.add(file);
    field.files = all.files;
    field.dispatchEvent(new Event("change", { bubbles: true }));
  };
  const add = (files) => set([...field.files, ...files]);
  const names = form.querySelector("[data-chosen]");
  field.addEventListener("change", () => {
    names.replaceChildren(...[...field.files].map((file) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.className = "chip";
      chip.textContent = file.name + " ×";
      chip.setAttribute("aria-label", names.dataset.chosen.replace("%s", () => file.name));
      chip.addEventListener("click", () => {
        set([...field.files].filter((other) => other !== file));
        form.querySelector("textarea").focus();
      });
      return chip;
    }));
  });
  form.addEventListener("dragover", (event) => {
    if (!carriesFiles(event)) return;
    event.preventDefault();
    form.classList.add("over");
  });
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    form.classList.remove("over");
    if (!carriesFiles(event)) return;
    event.preventDefault();
    add(event.dataTransfer.files);
  });
  form.addEventListener("paste", (event) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  });
  // Ctrl+Enter sends, as in other message boxes.
  form.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit();
  });
}
