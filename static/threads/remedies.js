// What a person can do about an answer: ask another model, change the message in
// place, unfold the details. Each control is a link or a button that works without
// this; here it works without leaving the page.

import { grow, installKeys } from "./composer.js";
import { putTools } from "./tools.js";

const FORMS = "#again, #anew, #decide";

function words(name) {
  return document.getElementById("composer").dataset[name];
}

// The menu of models serves every answer: it is pointed at the one that opened it.
function openModels(link) {
  const menu = document.getElementById("models");
  if (!menu) {
    // A second model came after this page.
    location.assign(link.href);
    return;
  }
  const buttons = [...menu.querySelectorAll("button")];
  for (const button of buttons) {
    button.setAttribute("formaction", link.getAttribute("href"));
    button.hidden = button.value === link.dataset.model;
  }
  menu.showPopover({ source: link });
  buttons.find((button) => !button.hidden)?.focus();
}

function walkModels(event) {
  const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
  if (!step) return;
  const buttons = [...event.currentTarget.querySelectorAll("button:not([hidden])")];
  const at = buttons.indexOf(document.activeElement) + step;
  buttons[Math.max(0, Math.min(buttons.length - 1, at))]?.focus();
  event.preventDefault();
}

// One message at most is being changed.
let editor = null;

function closeEditor({ focus = false } = {}) {
  if (!editor) return;
  const { form, cell, opener } = editor;
  editor = null;
  form.remove();
  cell.classList.remove("changing");
  if (!focus) return;
  (opener.isConnected ? opener : cell.querySelector("[data-change]"))?.focus();
}

function openEditor(cell, opener, draft) {
  closeEditor();
  const form = document.getElementById("change-form").content.firstElementChild.cloneNode(true);
  const area = form.querySelector("textarea");
  const address = cell.querySelector("[data-change]").getAttribute("href");
  form.setAttribute("action", address);
  form.elements.key.value = document.getElementById("again-key").value;
  area.value = draft ?? cell.querySelector(".message").textContent;
  cell.classList.add("changing");
  cell.querySelector(".message").after(form);
  editor = { form, cell, opener };
  grow(area);
  area.addEventListener("input", () => grow(area));
  installKeys(form, area);
  form.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closeEditor({ focus: true });
  });
  form.querySelector("[data-cancel]").addEventListener("click", () => closeEditor({ focus: true }));
  area.focus();
  area.setSelectionRange(area.value.length, area.value.length);
}

// What was being written when another tab changed the message is not lost.
export function keepDraft(gone, cell) {
  if (editor?.cell !== gone) return;
  const draft = editor.form.elements.prompt.value;
  const landed = cell.querySelector(".message").textContent === draft.replace(/^\n+|\n+$/g, "");
  closeEditor();
  if (!landed) openEditor(cell, cell.querySelector("[data-change]"), draft);
}

function unfold(link, say) {
  const panel = document.getElementById(link.getAttribute("aria-controls"));
  const opens = link.getAttribute("aria-expanded") !== "true";
  const set = (open) => {
    link.setAttribute("aria-expanded", String(open));
    panel.hidden = !open;
  };
  set(opens);
  if (!opens || panel.hasChildNodes()) return;
  const address = link.getAttribute("href");
  panel.addEventListener("htmx:beforeSwap", (event) => {
    if (new URL(event.detail.xhr.responseURL).pathname !== address) {
      // A session that ended leads to the sign-in page.
      event.detail.shouldSwap = false;
      location.assign(address);
    }
  }, { once: true });
  htmx.ajax("GET", address, { target: panel, swap: "innerHTML" }).finally(() => {
    if (panel.hasChildNodes()) return;
    set(false);
    say(document.getElementById("thread").dataset.sayUnreachable);
  });
}

// A form inside a cell is sent by one that stays: the socket may put another cell
// in its place before the answer to it is here.
function sendAnew(form, button) {
  if (form.ariaBusy) return;
  const values = Object.fromEntries(new FormData(form, button));
  const source = `#${form.dataset.anew || "anew"}`;
  form.ariaBusy = "true";
  htmx.ajax("POST", form.getAttribute("action"), { source, values, swap: "none" }).finally(() => { form.ariaBusy = null; });
}

// Where a request that failed is spoken of: where it was made.
function placeOf(path) {
  const [, tool] = /\/tools\/(\d+)\//.exec(path) ?? [];
  const [, id, what] = /\/cells\/(\d+)\/(\w+)\//.exec(path) ?? [];
  const place = tool ? `tool-${tool}-said` : what === "change" ? "change-said" : `cell-${id}-said`;
  return document.getElementById(place) ?? document.getElementById("composer-error");
}

// What is said where a request failed; a message is kept, a decision is not made.
function failure(form, status) {
  if (form.id !== "decide") return words(status === 0 ? "unreachable" : "failed");
  const { sayUnreachable, sayUndecided } = document.getElementById("thread").dataset;
  return status === 0 ? sayUnreachable : sayUndecided;
}

function answered(event, say) {
  if (!event.target.matches?.(FORMS)) return;
  const { xhr, successful, requestConfig } = event.detail;
  const path = requestConfig.path;
  document.getElementById("models")?.hidePopover();
  if (event.target.id === "decide" && (successful || xhr.status === 422)) say(putTools(xhr.responseText));
  if (xhr.status === 422) return;
  if (!successful || new URL(xhr.responseURL).pathname !== path) {
    // Also the sign-in page, to which a session that ended is sent.
    placeOf(path).textContent = failure(event.target, xhr.status);
    return;
  }
  if (path === editor?.form.getAttribute("action")) closeEditor();
  const { model } = requestConfig.parameters;
  const select = document.getElementById("model");
  if (model && select) select.value = model;
}

export function installRemedies(say) {
  document.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    const link = event.target.closest("a[data-models], a[data-change], a.fold[aria-controls]");
    if (!link) return;
    event.preventDefault();
    if (link.matches(".fold")) {
      unfold(link, say);
    } else if (link.matches("[data-models]")) {
      openModels(link);
    } else {
      const cell = document.getElementById(`cell-${link.dataset.change}`);
      if (cell) openEditor(cell, link);
    }
  });
  document.getElementById("models")?.addEventListener("keydown", walkModels);
  document.addEventListener("submit", (event) => {
    if (!event.target.matches("[data-anew]")) return;
    event.preventDefault();
    sendAnew(event.target, event.submitter);
  });
  document.addEventListener("htmx:afterRequest", (event) => answered(event, say));
}
