// The end of an answer that is still being written, as text nodes. Nothing here
// reads HTML: what a model writes can only ever become text.

import { InlineText } from "./inline.js";

// Beyond this the text is appended as it is, so that cost stays linear.
const LONGEST_FORMATTED = 4096;
const ITEM = /^(\s*)(?:([-*+])|(\d{1,9}[.)]))\s+(.*)$/s;
const QUOTE = /^\s{0,3}>\s?(.*)$/s;
const HEADING = /^\s{0,3}(#{1,6})(?:\s+|$)/;

class Paragraph {
  constructor(element) {
    this.inline = new InlineText(element);
  }

  set(text) {
    this.inline.set(text.replace(/\n+$/, ""));
  }
}

class Heading {
  constructor(element) {
    this.element = element;
    this.inline = new InlineText(element);
  }

  set(text) {
    const marks = HEADING.exec(text);
    this.element.dataset.level = String(marks ? Math.min(marks[1].length, 4) : 1);
    this.inline.set(text.slice(marks ? marks[0].length : 0).replace(/\n+$/, ""));
  }
}

// The rows of a table that the server has not rendered yet, put into the table
// that it has. A row has as many cells as the head; a bar in code stays a bar.
class Rows {
  constructor(table) {
    this.body = table.tBodies[0] ?? table.createTBody();
    this.heads = [...table.rows[0].cells];
    this.rows = [];
  }

  set(index, text) {
    this.rows[index] ??= this.add();
    const parts = text.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/);
    this.rows[index].cells.forEach((cell, column) => {
      cell.set((parts[column] ?? "").trim().replaceAll("\\|", "|"));
    });
  }

  add() {
    const row = this.body.insertRow();
    const cells = this.heads.map((head) => {
      const cell = row.insertCell();
      cell.className = head.className;
      return new InlineText(cell);
    });
    return { row, cells };
  }

  leave() {
    for (const { row } of this.rows) row.remove();
  }
}

// Lists and quotations: a line each, dressed like what it will become.
class Lines {
  constructor(element) {
    this.element = element;
    this.lines = [];
    const table = element.previousElementSibling?.querySelector(":scope > .table-scroll:last-child table");
    this.rows = table ? new Rows(table) : null;
  }

  set(text) {
    const wanted = text.split("\n").filter((line) => line.trim());
    wanted.forEach((line, index) => {
      if (this.rows) this.rows.set(index, line);
      else if (this.lines[index]?.text !== line) this.show(index, line);
    });
  }

  leave() {
    this.rows?.leave();
  }

  show(index, text) {
    if (!this.lines[index]) {
      const element = document.createElement("div");
      this.element.append(element);
      this.lines[index] = { element, inline: new InlineText(element) };
    }
    const line = this.lines[index];
    line.text = text;
    const item = ITEM.exec(text);
    const quote = QUOTE.exec(text);
    line.element.className = "line";
    if (item) {
      const depth = Math.min(3, Math.floor(item[1].length / 2));
      line.element.className = `line item depth-${depth}${item[3] ? " ordered" : ""}`;
      if (item[3]) line.element.dataset.number = item[3];
    } else if (quote) {
      line.element.className = "line quoted";
    }
    line.inline.set(item ? item[4] : quote ? quote[1] : text);
  }
}

class Code {
  constructor(element, language) {
    const figure = document.createElement("figure");
    const caption = document.createElement("figcaption");
    const name = document.createElement("span");
    const pre = document.createElement("pre");
    const code = document.createElement("code");
    figure.className = "code";
    pre.tabIndex = 0;
    name.textContent = language;
    caption.append(name);
    this.node = document.createTextNode("");
    code.append(this.node);
    pre.append(code);
    figure.append(caption, pre);
    element.append(figure);
  }

  set(text) {
    this.node.data = text;
  }

  append(text) {
    this.node.appendData(text);
  }
}

const KINDS = { p: Paragraph, h: Heading, code: Code };

export class Tail {
  constructor(element) {
    this.element = element;
    this.kind = element.dataset.kind ?? "p";
    this.text = element.querySelector("code")?.textContent ?? element.textContent;
    this.frozen = false;
    element.replaceChildren();
    this.view = new (KINDS[this.kind] ?? Lines)(element, element.dataset.language ?? "");
    this.write("");
  }

  // The next tail is a new element: moving this one would be a shift of layout.
  succeed(kind, text, language) {
    this.view.leave?.();
    const element = document.createElement("div");
    element.className = "tail";
    element.dataset.kind = kind;
    if (kind === "code") element.dataset.language = language;
    element.textContent = text;
    this.element.replaceWith(element);
    return new Tail(element);
  }

  append(text) {
    this.text += text;
    this.write(text);
  }

  write(added) {
    if (this.view.append && added) {
      this.view.append(added);
    } else if (this.frozen) {
      this.element.append(document.createTextNode(added));
    } else if (this.kind === "code" || this.text.length <= LONGEST_FORMATTED) {
      this.view.set(this.text);
    } else {
      this.frozen = true;
      this.view.leave?.();
      this.element.replaceChildren(document.createTextNode(this.text));
    }
  }
}
