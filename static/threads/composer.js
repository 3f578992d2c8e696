// The composer: Enter sends, the text grows with what is written, and nothing
// that was written is lost. A draft is kept for each thread in this tab.

const SENT = "draft-sent";

function isTouch() {
  return matchMedia("(hover: none) and (pointer: coarse)").matches;
}

function remember(key, value) {
  try {
    if (value) sessionStorage.setItem(key, value);
    else sessionStorage.removeItem(key);
  } catch {
    // Storage is full or switched off: the text stays in the page.
  }
}

function recall(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

export function grow(area) {
  if (CSS.supports("field-sizing", "content")) return;
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

function isRunning() {
  return document.getElementById("composer-state")?.hasAttribute("data-running") ?? false;
}

function refuse(message) {
  const place = document.getElementById("composer-error");
  if (place) place.textContent = message;
}

// What stands in the way of a message: an answer, or a question about a tool in it.
function inTheWay({ dataset }) {
  return document.querySelector(".decide") ? dataset.asking : dataset.busy;
}

// What was said of a message that could not be sent, under these names, is no longer
// true.
export function forget(...names) {
  const form = document.getElementById("composer");
  const said = document.getElementById("composer-error")?.textContent.trim();
  if (said && names.some((name) => form.dataset[name] === said)) refuse("");
}

function installDraft(form, area) {
  const key = `draft:${form.dataset.draft}`;
  // A new thread's draft went with its page; now its thread is here.
  if (recall(SENT) && recall(SENT) !== key) remember(recall(SENT), "");
  remember(SENT, "");
  if (!area.value) area.value = recall(key) ?? "";
  area.addEventListener("input", () => {
    grow(area);
    remember(key, area.value);
    if (document.getElementById("composer-error")?.textContent) refuse("");
  });
  return key;
}

export function installKeys(form, area) {
  area.addEventListener("keydown", (event) => {
    // While a syllable is being composed (also 229, for Safari) Enter takes it.
    const composing = event.isComposing || event.keyCode === 229;
    if (event.key !== "Enter" || event.shiftKey || composing || isTouch()) return;
    event.preventDefault();
    form.requestSubmit();
  });
}

function installGuards(form, area) {
  // In the capture phase, before htmx takes the submission.
  document.addEventListener("submit", (event) => {
    if (event.target !== form) return;
    const empty = !area.value.trim();
    const busy = isRunning();
    if (!empty && !busy && !form.hasAttribute("aria-busy")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (busy && !empty) refuse(inTheWay(form));
    area.focus();
  }, true);
}

function installSending(form, area, key, onSent) {
  let sent = "";
  if (!form.hasAttribute("hx-post")) {
    form.addEventListener("submit", () => remember(SENT, key));
    return;
  }
  form.addEventListener("htmx:beforeRequest", () => {
    sent = area.value;
    form.setAttribute("aria-busy", "true");
  });
  form.addEventListener("htmx:afterRequest", (event) => {
    form.removeAttribute("aria-busy");
    const { xhr, successful } = event.detail;
    if (xhr.status === 0) {
      refuse(form.dataset.unreachable);
    } else if (xhr.status === 422) {
      area.focus();
    } else if (!successful || new URL(xhr.responseURL).pathname !== form.getAttribute("action")) {
      // Also the sign-in page, to which a session that ended is sent.
      refuse(form.dataset.failed);
    } else {
      if (area.value === sent) area.value = "";
      remember(key, area.value);
      grow(area);
      onSent();
    }
  });
}

export function installComposer(onSent = () => {}) {
  const form = document.getElementById("composer");
  const area = document.getElementById("composer-text");
  if (!form || !area) return;
  const key = installDraft(form, area);
  installKeys(form, area);
  installGuards(form, area);
  installSending(form, area, key, onSent);
  grow(area);
}
