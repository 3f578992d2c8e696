// Emphasis, code and links in text that is still growing: a small reading of
// Markdown, only for the moment until the server sends the block. What is open is
// shown as if it were closed; marks at the very end are held back.

const LINK = /^!?\[([^[\]\n]*)\]\([^()\s]*(?:\s+"[^"]*")?\)/;
const OPEN_LINK = /^!?\[([^[\]\n]*)\]\([^()\n]*$/;
const ADDRESS = /^https?:\/\/[^\s<>"')\]]+/;
const PUNCTUATION = /[!-/:-@[-`{-~]/;

class Reader {
  constructor(text) {
    this.text = text;
    this.at = 0;
    this.styles = new Set();
    this.runs = [];
  }

  put(text, style = "") {
    const key = [...this.styles, style].filter(Boolean).sort().join(" ");
    const last = this.runs.at(-1);
    if (last && last.key === key) last.text += text;
    else if (text) this.runs.push({ key, text });
  }

  code() {
    const marks = /^`+/.exec(this.text.slice(this.at))[0];
    const from = this.at + marks.length;
    let to = this.text.indexOf(marks, from);
    while (to >= 0 && this.text[to + marks.length] === "`") {
      to = this.text.indexOf(marks, to + marks.length + 1);
    }
    const end = to < 0 ? this.text.length : to;
    this.put(this.text.slice(from, end), "code");
    this.at = to < 0 ? end : end + marks.length;
  }

  link(rest) {
    const match = LINK.exec(rest) ?? OPEN_LINK.exec(rest);
    if (!match) return false;
    this.put(match[1], "link");
    this.at += match[0].length;
    return true;
  }

  mark(mark, style) {
    const before = this.text[this.at - 1] ?? " ";
    const after = this.text[this.at + mark.length];
    const open = this.styles.has(style);
    const inWord = mark[0] === "_" && (open ? /\w/.test(after ?? "") : /\w/.test(before));
    const possible = open ? !/\s/.test(before) : after === undefined || !/\s/.test(after);
    if (inWord || !possible) {
      this.put(mark);
    } else if (open) {
      this.styles.delete(style);
    } else if (after !== undefined) {
      this.styles.add(style);
    }
    this.at += mark.length;
  }

  step() {
    const character = this.text[this.at];
    const pair = this.text.slice(this.at, this.at + 2);
    if (character === "\\" && PUNCTUATION.test(this.text[this.at + 1] ?? "")) {
      this.put(pair[1]);
      this.at += 2;
    } else if (character === "`") {
      this.code();
    } else if (pair === "**" || pair === "__") {
      this.mark(pair, "strong");
    } else if (pair === "~~") {
      this.mark(pair, "s");
    } else if (character === "*" || character === "_") {
      this.mark(character, "em");
    } else {
      this.plain(character, pair);
    }
  }

  plain(character, pair) {
    const rest = this.text.slice(this.at);
    if ((character === "[" || pair === "![") && this.link(rest)) return;
    const address = character === "h" && ADDRESS.exec(rest);
    if (address) {
      this.put(address[0], "link");
      this.at += address[0].length;
      return;
    }
    const stretch = /^[^\\`*_~[!h]+/.exec(rest)?.[0] ?? character;
    this.put(stretch);
    this.at += stretch.length;
  }
}

export function readInline(text) {
  const reader = new Reader(text);
  while (reader.at < text.length) reader.step();
  return reader.runs;
}

const ELEMENTS = { strong: "strong", em: "em", s: "s", code: "code", link: "span" };

function build(run) {
  const node = document.createTextNode(run.text);
  let root = node;
  for (const style of run.key.split(" ").filter(Boolean)) {
    const element = document.createElement(ELEMENTS[style]);
    if (style === "link") element.className = "link";
    element.append(root);
    root = element;
  }
  return { ...run, node, root };
}

// Runs in an element, changed as little as possible: what the reader has selected
// stays selected, and unchanged text is not touched.
export class InlineText {
  constructor(element) {
    this.element = element;
    this.shown = [];
  }

  set(text) {
    const runs = readInline(text);
    let same = 0;
    while (same < runs.length && this.shown[same]?.key === runs[same].key) {
      const shown = this.shown[same];
      const wanted = runs[same].text;
      if (wanted.startsWith(shown.text)) {
        if (wanted.length > shown.text.length) shown.node.appendData(wanted.slice(shown.text.length));
      } else {
        shown.node.data = wanted;
      }
      shown.text = wanted;
      same += 1;
    }
    for (const shown of this.shown.splice(same)) shown.root.remove();
    for (const run of runs.slice(same)) {
      const shown = build(run);
      this.shown.push(shown);
      this.element.append(shown.root);
    }
  }
}
