// Answers that are being written: applies the socket's frames to their cells.
// The rule is the server's (threads/core/snapshot.py): inside a generation text
// only grows, a newer generation may shorten, an older one is ignored.

import { Tail } from "./tail.js";
import { toolsIn } from "./tools.js";

function textOfHtml(html) {
  return new DOMParser().parseFromString(html, "text/html").body.textContent;
}

// Tools that are shown already keep what stands in them: `shown`, by their ids.
function block(html, shown) {
  const element = document.createElement("div");
  element.className = "block";
  element.innerHTML = html; // sanitised by the server: threads/rendering/markdown.py
  const place = toolsIn(element);
  const tools = place && shown.get(place.id);
  if (tools) place.replaceWith(tools);
  return element;
}

// Tell whether an answer that is being written shows less than another copy of it.
export function isBehind(element, other) {
  if (element.dataset.status !== "streaming") return false;
  const [mine, theirs] = [element, other].map((cell) => {
    const { generation, offset, reasoningOffset } = cell.dataset;
    // Where a text stands still, its tools come as a block more.
    const blocks = cell.querySelectorAll(".answer-text > .block").length;
    return [generation, offset, blocks, reasoningOffset].map(Number);
  });
  const place = mine.findIndex((count, index) => count !== theirs[index]);
  return place >= 0 && mine[place] < theirs[place];
}

export class Cell {
  constructor(element) {
    this.element = element;
    this.generation = Number(element.dataset.generation);
    this.offset = Number(element.dataset.offset);
    this.reasoningOffset = Number(element.dataset.reasoningOffset);
    this.body = element.querySelector(".answer-text");
    this.blocks = [...this.body.querySelectorAll(":scope > .block")];
    this.open = this.part("open");
    this.tail = new Tail(this.part("tail"));
    this.note = element.querySelector(".note");
    this.again = Number(this.note.dataset.again ?? 0);
    this.isUntold = false;
    this.news = "";
    this.reasoning = element.querySelector(".reasoning");
    const isThinking = this.reasoningOffset && !this.offset && !this.blocks.length;
    this.thinkingSince = isThinking ? performance.now() : null;
  }

  part(name) {
    const found = this.body.querySelector(`:scope > .${name}`);
    if (found) return found;
    const element = document.createElement("div");
    element.className = name;
    this.body.append(element);
    return element;
  }

  get standing() {
    return [this.generation, this.blocks.length, this.offset, this.reasoningOffset];
  }

  get isBlank() {
    return [...this.body.children].every((part) => toolsIn(part) || !part.textContent.trim());
  }

  // Returns false when the frame does not follow what is shown.
  apply(frame) {
    if (frame.g < this.generation) return true;
    const isNewer = frame.g > this.generation;
    const wasRead = isNewer && frame.w && !this.isBlank;
    if (isNewer && !this.renew(frame)) return false;
    if (frame.b !== undefined) {
      if (frame.k > this.blocks.length) return false;
      this.replace(frame);
    } else if (frame.t !== undefined) {
      if (frame.o !== this.offset) return false;
      this.tail.append(frame.t);
    }
    if (frame.n !== undefined) this.offset = frame.n;
    if (frame.r !== undefined && !this.reason(frame, isNewer)) return false;
    if (this.offset) this.endThinking();
    if (frame.note !== undefined) this.annotate(textOfHtml(frame.note), frame.again);
    else if (wasRead && this.isBlank) this.explain();
    else if (!frame.w && (frame.t || frame.r || frame.b?.length)) this.annotate("");
    this.mark();
    return true;
  }

  // A newer generation comes whole. What else the server says of one that is not
  // here yet, such as a note, is taken as it is.
  renew(frame) {
    if (frame.b === undefined) return frame.t === undefined && frame.r === undefined;
    if (frame.k !== 0) return false;
    this.endThinking();
    this.generation = frame.g;
    this.reasoningOffset = 0;
    this.reasoning.querySelector(".reasoning-text").textContent = "";
    this.reasoning.hidden = true;
    return true;
  }

  replace(frame) {
    const gone = this.blocks.splice(frame.k);
    const tools = new Map(gone.map(toolsIn).filter(Boolean).map((each) => [each.id, each]));
    const focused = document.activeElement;
    for (const each of gone) each.remove();
    const added = frame.b.map((html) => block(html, tools));
    this.blocks.push(...added);
    this.open.before(...added);
    if (added.some(toolsIn)) this.endThinking();
    if (focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true });
    this.open.innerHTML = frame.h ?? ""; // sanitised like a block
    this.tail = this.tail.succeed(frame.d ?? "p", frame.t ?? "", frame.l ?? "");
  }

  reason(frame, isKept) {
    const place = this.reasoning.querySelector(".reasoning-text");
    if (frame.ro === 0) place.textContent = "";
    else if (frame.ro !== this.reasoningOffset) return false;
    place.append(document.createTextNode(frame.r));
    this.reasoningOffset = frame.rn;
    this.reasoning.hidden = false;
    if (!this.offset && !isKept && this.thinkingSince === null) {
      this.thinkingSince = performance.now();
      this.label.textContent = this.label.dataset.thinking;
    }
    return true;
  }

  get label() {
    return this.reasoning.querySelector(".reasoning-label");
  }

  endThinking() {
    if (this.thinkingSince === null) return;
    const seconds = Math.max(1, Math.round((performance.now() - this.thinkingSince) / 1000));
    this.label.textContent = this.label.dataset.thought.replace("{seconds}", seconds);
    this.thinkingSince = null;
  }

  // While it thinks, the folded line itself says how long. `again` numbers the try
  // that a note tells of: each is news once, its seconds are not.
  annotate(text, again = 0) {
    const thinking = this.thinkingSince !== null;
    if (thinking) this.label.textContent = text || this.label.dataset.thinking;
    this.note.textContent = thinking ? "" : text;
    this.note.classList.toggle("again", again > 0);
    if (again && again !== this.again) this.news = text;
    else if (this.isUntold) this.news = this.note.dataset.withdrawn;
    this.again = again;
    this.isUntold = false;
  }

  // Said in the place of the text that left, until the server's own note is here.
  explain() {
    if (this.again) return;
    this.note.textContent = this.note.dataset.withdrawn;
    this.note.classList.add("again");
    this.isUntold = true;
  }

  // What is to be said aloud of this cell, once.
  takeNews() {
    const { news } = this;
    this.news = "";
    return news;
  }

  mark() {
    this.element.dataset.generation = this.generation;
    this.element.dataset.offset = this.offset;
    this.element.dataset.reasoningOffset = this.reasoningOffset;
  }

  // Returns false when text is left that no block has taken over.
  end(status) {
    this.element.dataset.status = status;
    this.endThinking();
    this.annotate("");
    this.note.hidden = true;
    if (this.tail.text.trim() || this.open.hasChildNodes()) return false;
    this.tail.element.remove();
    this.open.remove();
    return true;
  }
}
