// A thread's page: its socket, its answers, its one status region.

import { Cell, isBehind } from "./cells.js";
import { forget, installComposer } from "./composer.js";
import { installRemedies, keepDraft } from "./remedies.js";
import { Scroll } from "./scroll.js";
import { say } from "./status.js";
import { keepTools, putTools } from "./tools.js";

const QUIET_MS = 2000;
const RETRY_MS = 3000;
const GONE = [4401, 4404];
const RETRIED_BY_HTMX = [1006, 1011, 1012, 1013];
const MOST_SHOWN = 200;

const main = document.getElementById("thread");
const cells = document.getElementById("cells");
const connection = document.getElementById("connection");
const live = new Map();
const replacing = new WeakSet();
const scroll = new Scroll({
  cells,
  spacer: document.getElementById("spacer"),
  dock: document.querySelector(".dock"),
  bar: document.querySelector(".bar"),
  jump: document.getElementById("jump"),
});
let socket = null;
let lostTimer = 0;

function sendJson(message) {
  socket?.send(JSON.stringify(message));
}

// Take up the answers that are being written, and let go of those that are over.
function survey() {
  for (const element of cells.querySelectorAll('.cell-answer[data-status="streaming"]')) {
    const id = Number(element.dataset.cell);
    const before = live.get(id);
    if (before?.element === element) continue;
    const cell = new Cell(element);
    live.set(id, cell);
    // Another copy of it may say already that it is tried again.
    if (before && cell.again && cell.again !== before.again) say(cell.note.textContent);
  }
  for (const [id, cell] of live) {
    const foot = document.getElementById(`cell-${id}-foot`);
    const status = foot?.dataset.status ?? "gone";
    if (status !== "streaming") end(id, cell, status);
  }
}

function end(id, cell, status) {
  live.delete(id);
  // A cell that came whole stands there already as it ended.
  if (cell.element.isConnected && !cell.end(status)) sendJson({ type: "resync", cell: id });
  announce(status, document.getElementById(`cell-${id}-foot`)?.querySelector(".sentence")?.textContent);
}

function announce(status, sentence = "") {
  if (status === "done" && sentence) {
    say(sentence);
    return;
  }
  const words = { streaming: "sayStreaming", done: "sayDone", error: "sayError", stopped: "sayStopped" };
  say([main.dataset[words[status]], sentence].filter(Boolean).join(" "));
}

function applyFrame(frame) {
  if (frame.tools !== undefined) {
    say(putTools(frame.tools));
    if (!cells.querySelector(".decide")) forget("asking");
    return;
  }
  const cell = live.get(frame.c);
  if (!cell) return;
  const follows = frame.w && frame.g > cell.generation
    ? scroll.shorten(cell.element, cell.note, () => cell.apply(frame))
    : cell.apply(frame);
  if (!follows) sendJson({ type: "resync", cell: frame.c });
  say(cell.takeNews());
  if (frame.s && frame.s !== "streaming") end(frame.c, cell, frame.s);
}

function hello() {
  const positions = [...cells.children].map((cell) => Number(cell.dataset.position));
  const standings = [...live].map(([id, cell]) => [id, cell.standing]);
  const shows = [...cells.children].slice(-MOST_SHOWN).map((cell) => Number(cell.dataset.cell));
  sendJson({ type: "hello", acks: true, position: Math.max(-1, ...positions), cells: Object.fromEntries(standings), shows });
}

function setConnection(message) {
  if (connection.textContent === message) return;
  const wasLost = Boolean(connection.textContent);
  connection.textContent = message;
  connection.hidden = !message;
  if (message || wasLost) say(message || main.dataset.sayBack);
}

// What could not be sent in the meantime can be sent now.
function forgetUnreachable() {
  const words = [main.dataset.sayUnreachable, document.getElementById("composer")?.dataset.unreachable];
  for (const said of cells.querySelectorAll(".said")) {
    if (words.includes(said.textContent)) said.textContent = "";
  }
  forget("unreachable");
}

main.addEventListener("htmx:wsOpen", (event) => {
  socket = event.detail.socketWrapper;
  clearTimeout(lostTimer);
  lostTimer = 0;
  setConnection("");
  forgetUnreachable();
  survey();
  hello();
});

main.addEventListener("htmx:wsClose", (event) => {
  const { code } = event.detail.event;
  if (GONE.includes(code)) {
    clearTimeout(lostTimer);
    setConnection(main.dataset.sayGone);
    return;
  }
  lostTimer ||= setTimeout(() => setConnection(main.dataset.sayLost), QUIET_MS);
  if (!RETRIED_BY_HTMX.includes(code)) {
    setTimeout(() => event.detail.socketWrapper.reconnect(), RETRY_MS * Math.random());
  }
});

// A thread that was begun elsewhere has no row here yet: it gets its place.
function makeRoomForRow(message) {
  const id = /^<li id="(thread-\d+)"/.exec(message.trimStart())?.[1];
  const list = document.querySelector(".sidebar-list");
  if (!id || !list || document.getElementById(id)) return;
  let group = list.querySelector("ul");
  if (!group || list.querySelector("h2")?.textContent !== list.dataset.today) {
    const heading = Object.assign(document.createElement("h2"), { textContent: list.dataset.today });
    group = document.createElement("ul");
    list.prepend(heading, group);
  }
  group.prepend(Object.assign(document.createElement("li"), { id }));
}

main.addEventListener("htmx:wsBeforeMessage", (event) => {
  const { message } = event.detail;
  if (!message.startsWith("{")) {
    makeRoomForRow(message);
    return;
  }
  event.preventDefault();
  const frame = JSON.parse(message);
  // The server sends only so much more than this page says it has read.
  if (frame.a) sendJson({ type: "ack", a: frame.a });
  else applyFrame(frame);
});

// Cells come by the socket and as the answer to a form; each is put in once: at the
// end, or in the place of another version. Of two that are the same the one with more
// text stays: the server counts on it.
cells.addEventListener("htmx:oobBeforeSwap", (event) => {
  const { target, fragment } = event.detail;
  if (target.matches(".cell")) keepTools(target, fragment);
  if (target !== cells) return;
  for (const cell of [...fragment.children]) {
    const shown = cells.querySelector(`:scope > [data-position="${cell.dataset.position}"]`);
    const twin = document.getElementById(cell.id);
    if (twin && !isBehind(twin, cell)) cell.remove();
    else if (twin ?? shown) replace(twin ?? shown, cell);
  }
});

function replace(shown, cell) {
  const act = shown.contains(document.activeElement) ? document.activeElement.dataset.act : null;
  replacing.add(cell);
  keepTools(shown, cell);
  scroll.replace(shown, cell);
  htmx.process(cell);
  keepDraft(shown, cell);
  if (act) {
    const turns = [...cell.querySelectorAll(".turn:enabled")];
    (turns.find((turn) => turn.dataset.act === act) ?? turns[0])?.focus({ preventScroll: true });
  }
  if (cell.dataset.status !== "streaming") say(cell.querySelector(".version-number .visually-hidden")?.textContent);
}

function settled() {
  const before = live.size;
  survey();
  if (before && !live.size) forget("busy", "asking");
  if (live.size > before) {
    const { element: newest, again, note } = [...live.values()].at(-1);
    if (!replacing.has(newest)) scroll.pin(newest.previousElementSibling ?? newest);
    announce("streaming");
    // It may come here as it is tried again already.
    if (again) say(note.textContent);
  }
}
main.addEventListener("htmx:wsAfterMessage", settled);
document.addEventListener("htmx:afterRequest", settled);

// Focus on a button that was replaced goes back to the message.
document.addEventListener("htmx:oobAfterSwap", () => {
  if (document.activeElement === document.body && matchMedia("(hover: hover)").matches) {
    document.getElementById("composer-text")?.focus({ preventScroll: true });
  }
});

document.getElementById("stop").addEventListener("htmx:configRequest", (event) => {
  const cell = [...live.values()].at(-1);
  if (!cell) return;
  event.detail.parameters.set("generation", cell.generation);
  event.detail.parameters.set("offset", cell.offset);
});

const title = document.getElementById("title");
title.addEventListener("keydown", (event) => {
  if (event.key !== "Escape") return;
  title.value = title.defaultValue;
  title.blur();
});
title.form.addEventListener("htmx:afterRequest", (event) => {
  if (!event.detail.successful) return;
  title.value = title.value.trim() || title.defaultValue;
  title.defaultValue = title.value;
  document.querySelector("h1").textContent = title.value;
  document.title = `${title.value} · chatsite`;
});

installComposer();
installRemedies(say);
survey();
scroll.begin();
