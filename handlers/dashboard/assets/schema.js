// Shows the fault of an output schema while it is typed. Without this script, the sent form shows
// the fault.
"use strict";

for (const field of document.querySelectorAll("textarea[data-check]")) {
  const says = document.getElementById("e-" + field.name);
  let timer, asked = 0;
  const check = async () => {
    const mine = ++asked;
    try {
      const body = new URLSearchParams({ [field.name]: field.value });
      const answer = await fetch(field.dataset.check, { method: "POST", body });
      const problem = answer.ok ? await answer.text() : "";
      if (mine !== asked) return; // the text has changed
      says.textContent = problem;
      field.setAttribute("aria-invalid", problem !== "");
      field.parentElement.classList.toggle("wrong", problem !== "");
    } catch {
      // No answer: the sent form shows the fault.
    }
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, 400);
  });
}
