// Says while an output schema is typed what is wrong with it. Without this script the
// form says so when it is sent.
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
      if (mine !== asked) return; // more has been typed since
      says.textContent = problem;
      field.setAttribute("aria-invalid", problem !== "");
      field.parentElement.classList.toggle("wrong", problem !== "");
    } catch {
      // Not reached: the form will say.
    }
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(check, 400);
  });
}
