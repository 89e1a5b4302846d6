// The turns of a task as they run: the events that clients get, too, drawn as text.
// Nothing of theirs is ever taken for HTML. When the task rests or ends, the page
// that the server makes takes the place of what was drawn here.
"use strict";

(() => {
  const longest = 100000; // characters of one text; the server's page has the rest
  const element = (name, className, text) => {
    const node = document.createElement(name);
    if (className) node.className = className;
    if (text !== undefined) node.textContent = text;
    return node;
  };

  // code is what may have to be scrolled, by keyboard too.
  const code = (text) => {
    const node = element("pre", "", text);
    node.tabIndex = 0;
    return node;
  };

  // A task's page while it runs. Each start draws anew from the first event.
  class Live {
    constructor(section) {
      this.turns = section.querySelector("#live-turns");
      this.status = section.querySelector("#live-status");
      this.stream = section.dataset.stream;
      this.lastId = "";
      this.failures = 0;
      this.broken = false;
      this.drawn = false;
      this.open();
    }

    open() {
      const address = new URL(this.stream, location.href);
      if (this.lastId) address.searchParams.set("lastEventId", this.lastId);
      // By itself it comes back after a broken connection, with the id of the last event.
      this.events = new EventSource(address);
      this.events.onmessage = (event) => this.receive(event);
      this.events.onopen = () => {
        if (this.broken) this.say("Connected again.");
        this.failures = 0;
        this.broken = false;
      };
      this.events.onerror = () => this.failed();
    }

    // failed is for an answer that is no stream: then EventSource gives up.
    failed() {
      this.broken = true;
      if (this.events.readyState !== EventSource.CLOSED) {
        this.say("The connection broke; trying again.");
        return;
      }
      this.failures++;
      if (this.failures > 6) {
        this.say("There are no updates. Reload the page to see how the task stands.");
        return;
      }
      setTimeout(() => this.open(), 1000 * 2 ** this.failures);
    }

    receive(event) {
      if (event.lastEventId) this.lastId = event.lastEventId;
      if (event.data === "[DONE]") {
        this.events.close();
        refresh();
        return;
      }
      const chunk = JSON.parse(event.data);
      // Whoever has gone to the end of the page stays there; others are left alone.
      const follow = scrollY > 0 && innerHeight + scrollY > document.documentElement.scrollHeight - 50;
      if (!this.drawn) {
        this.drawn = true;
        this.turns.replaceChildren();
      }
      const draw = this[chunk.type];
      if (typeof draw === "function" && chunk.type.includes("-") || own.has(chunk.type)) draw.call(this, chunk);
      if (follow) scrollTo(0, document.documentElement.scrollHeight);
    }

    // say tells what goes on, for screen readers too: so not every word.
    say(text) {
      if (this.status.textContent !== text) this.status.textContent = text;
    }

    place() {
      if (!this.turn) this.begin();
      if (!this.step) this.beginStep();
      return this.step;
    }

    begin() {
      this.turn = element("article", "turn");
      this.steps = [];
      this.step = null;
      this.parts = new Map();
      this.calls = new Map();
      this.turns.append(this.turn);
    }

    beginStep() {
      this.step = element("div", "step");
      this.steps.push(this.step);
      this.turn.append(this.step);
    }

    "data-user-message"(chunk) {
      this.begin();
      const asked = element("div", "asked");
      const files = element("ul", "filelist");
      for (const part of chunk.data.parts) {
        if (part.type === "text") asked.append(element("div", "text", part.text.slice(0, longest)));
        if (part.type === "file") files.append(fileItem(part.url, part.filename));
      }
      if (files.firstChild) asked.append(files);
      this.turn.append(asked);
    }

    "data-status"(chunk) {
      const status = chunk.data.status;
      const badge = element("span", "badge " + (/^[a-z]+$/.test(status) ? status : ""), status);
      document.querySelector("#task [data-status]").replaceChildren(badge);
      this.say({ pending: "It waits for its turn to run.", running: "It is running.", completed: "It has ended.", error: "It has failed.", aborted: "It was cancelled." }[status] || status);
    }

    "start"() {
      if (!this.turn) this.begin();
    }

    "start-step"() {
      if (!this.turn) this.begin();
      this.beginStep();
      this.say("The model is working.");
    }

    "finish-step"() {
      this.step = null;
    }

    "reasoning-start"(chunk) {
      const details = element("details", "reasoning");
      const text = element("div", "text");
      details.append(element("summary", "", "Reasoning"), text);
      this.place().append(details);
      this.parts.set(chunk.id, text.appendChild(new Text("")));
      this.say("It is thinking.");
    }

    "reasoning-delta"(chunk) { this.write(chunk); }

    "text-start"(chunk) {
      const text = element("div", "said text");
      this.place().append(text);
      this.parts.set(chunk.id, text.appendChild(new Text("")));
      this.say("It is answering.");
    }

    "text-delta"(chunk) { this.write(chunk); }

    write(chunk) {
      const text = this.parts.get(chunk.id);
      if (text && text.length < longest) text.appendData(chunk.delta);
    }

    "tool-input-start"(chunk) {
      const details = element("details", "call");
      const summary = element("summary");
      const call = { badge: element("span", "badge pending", "asked for"), input: new Text(""), details };
      summary.append(element("code", "", chunk.toolName), " ", call.badge);
      const input = code("");
      input.append(call.input);
      details.append(summary, element("p", "faint", "Input"), input);
      this.place().append(details);
      this.calls.set(chunk.toolCallId, call);
      this.say("It uses the tool " + chunk.toolName + ".");
    }

    "tool-input-delta"(chunk) {
      const call = this.calls.get(chunk.toolCallId);
      if (call && call.input.length < longest) call.input.appendData(chunk.inputTextDelta);
    }

    "tool-input-available"(chunk) {
      const call = this.calls.get(chunk.toolCallId);
      if (!call) return;
      call.input.data = pretty(chunk.input);
      this.mark(call, "running", "running");
    }

    "tool-input-error"(chunk) { this.output(chunk.toolCallId, "Error", chunk.errorText, "failed", "error"); }
    "tool-output-available"(chunk) { this.output(chunk.toolCallId, "Output", pretty(chunk.output), "done", "completed"); }
    "tool-output-error"(chunk) { this.output(chunk.toolCallId, "Error", chunk.errorText, "failed", "error"); }

    mark(call, word, className) {
      call.badge.textContent = word;
      call.badge.className = "badge " + className;
    }

    output(id, label, text, word, className) {
      const call = this.calls.get(id);
      if (!call) return;
      this.mark(call, word, className);
      call.details.append(element("p", "faint", label), code(text.slice(0, longest)));
    }

    "data-approval"(chunk) {
      const call = this.calls.get(chunk.data.toolCallId);
      const pending = chunk.data.status === "pending";
      if (call) this.mark(call, pending ? "waits for approval" : chunk.data.status, pending ? "pending" : chunk.data.status === "approved" ? "running" : "error");
      this.say(pending ? "It waits for the approval of " + chunk.data.toolName + "." : "The call of " + chunk.data.toolName + " was " + chunk.data.status + ".");
      askAgain();
    }

    "source-url"(chunk) {
      const item = element("li");
      if (/^https?:/.test(chunk.url)) {
        const link = element("a", "", chunk.title || chunk.url);
        link.href = chunk.url;
        link.rel = "nofollow noreferrer noopener";
        link.target = "_blank";
        item.append(link);
      } else {
        item.textContent = chunk.title || chunk.url;
      }
      this.list("sources", "Sources").append(item);
    }

    "file"(chunk) { this.list("filelist", "Published files").append(fileItem(chunk.url)); }

    list(className, label) {
      let list = this.turn.querySelector(":scope > ul." + className);
      if (!list) {
        list = element("ul", className);
        this.turn.append(element("p", "faint", label), list);
      }
      return list;
    }

    "data-usage"(chunk) {
      const u = chunk.data;
      this.turn.append(element("p", "facts figures", `${u.inputTokens} tokens in, ${u.outputTokens} out, ${u.credits.toFixed(2)} credits`));
    }

    "error"(chunk) { this.turn.append(element("p", "trouble error", chunk.errorText)); }
    "abort"() { this.turn.append(element("p", "trouble aborted", "Cancelled.")); }

    // What was drawn of a step came from a try that was cut off.
    "data-restart"(chunk) {
      const from = Number(String(chunk.data.stepId).slice(1));
      for (const step of this.steps.splice(from)) step.remove();
      this.step = null;
    }
  }

  // The chunks whose names have no hyphen, which tells the others from the methods.
  const own = new Set(["start", "file", "error", "abort"]);

  function pretty(value) {
    const text = typeof value === "string" ? value : JSON.stringify(value, null, 2) ?? "";
    return text.slice(0, longest);
  }

  function fileItem(address, name) {
    const item = element("li");
    const url = new URL(address, location.href);
    const link = element("a", "", name || decodeURIComponent(url.pathname.split("/").pop()));
    if (url.pathname.startsWith("/api/workers/")) link.href = url.pathname + url.search; // ours, whatever host we are known by
    item.append(link);
    return item;
  }

  // fetched gives the page as the server makes it now.
  async function fetched() {
    const response = await fetch(location.pathname, { credentials: "same-origin" });
    if (!response.ok) throw new Error(response.statusText);
    return new DOMParser().parseFromString(await response.text(), "text/html");
  }

  // swap puts a part of the server's page in the place of ours. What is being
  // written in other parts stays.
  function swap(page, selector) {
    const fresh = page.querySelector(selector);
    const old = document.querySelector(selector);
    if (!fresh || !old) throw new Error("the page has no " + selector);
    const focused = old.contains(document.activeElement);
    old.replaceWith(fresh);
    fresh.dispatchEvent(new CustomEvent("fresh", { bubbles: true }));
    if (focused) document.querySelector("main").focus({ preventScroll: true });
    return fresh;
  }

  // refresh is for the end of the stream. Where new turns have come meanwhile, the
  // fresh page has them, and its own stream.
  async function refresh() {
    try {
      const page = await fetched();
      swap(page, "#task");
      if (page.querySelector("#follow-up")) swap(page, "#follow-up"); // the heading of the box alone
      setTimeout(start, 1000);
    } catch {
      location.reload();
    }
  }

  // askAgain shows what is asked of whoever looks: the server knows who may decide.
  let asking = 0;
  function askAgain() {
    clearTimeout(asking);
    asking = setTimeout(async () => {
      const reason = document.querySelector("#asked input[name=reason]:focus");
      if (reason && reason.value) return; // somebody is writing it
      try {
        swap(await fetched(), "#asked");
      } catch { /* the page at the end of the stream will say */ }
    }, 200);
  }

  function start() {
    const section = document.querySelector("#live[data-stream]");
    if (section) new Live(section);
  }
  start();
})();
