// Shows the next runs of a schedule while its rule is typed. The server computes them. Without this
// script, the list of schedules shows them after the form is sent.
"use strict";

for (const box of document.querySelectorAll("[data-runs]")) {
  const form = box.closest("form");
  const says = box.querySelector("[data-says]");
  let timer, asked = 0;
  const ask = async () => {
    const mine = ++asked;
    const query = new URLSearchParams();
    for (const [name, value] of new FormData(form)) {
      if (name.startsWith("when.") || name.endsWith("Unit")) query.append(name, value);
    }
    try {
      const answer = await fetch(box.dataset.runs + "?" + query);
      if (mine !== asked || !answer.ok && answer.status !== 422) return; // the text has changed, or the server is busy
      says.textContent = (await answer.text()).trim();
      says.classList.toggle("bad", !answer.ok);
      box.hidden = false;
    } catch {
      box.hidden = true; // the sent form shows the fault
    }
  };
  const later = () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 300);
  };
  form.addEventListener("input", later);
  form.addEventListener("change", later);
  const offer = box.querySelector("[data-zone]");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const cron = form.elements["when.cron"];
  if (zone && cron && zone !== offer.dataset.zone) {
    offer.hidden = false;
    offer.querySelector("span").textContent = zone;
    offer.querySelector("button").addEventListener("click", () => {
      cron.value = "CRON_TZ=" + zone + " " + cron.value.replace(/^(CRON_TZ|TZ)=\S+\s+/, "");
      cron.dispatchEvent(new Event("input", { bubbles: true }));
    });
  }
  ask();
}
