// What pages do beyond reading: copy buttons, selects that submit their form. Each
// works on attributes of the page, and a page without this script is still whole.
"use strict";

// enhance does so for a part of a page.
function enhance(root) {
  for (const button of root.querySelectorAll("[data-copy]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      const label = button.textContent;
      await navigator.clipboard.writeText(button.dataset.copy);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  }
  for (const select of root.querySelectorAll("select[data-submit]")) {
    const button = select.form.querySelector("button");
    if (button) button.hidden = true;
    select.addEventListener("change", () => select.form.requestSubmit());
  }
  for (const form of root.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", (event) => {
      if (!confirm(form.dataset.confirm)) event.preventDefault();
    });
  }
}
enhance(document);
document.addEventListener("fresh", (event) => enhance(event.target)); // a part that came later

// A page that comes back from the browser's memory may show what is over, even to
// somebody else: it is loaded anew.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });
