// Copying: code, an answer as it was written, a request id. A button says for a
// moment that it worked, by its picture and, to a screen reader, in words.

const SHOWN_MS = 2000;

async function textOf(button) {
  if (button.dataset.copyFrom) {
    const response = await fetch(button.dataset.copyFrom, { redirect: "error" });
    if (!response.ok) throw new Error(String(response.status));
    return response.text();
  }
  if (button.dataset.copy === "code") {
    return button.closest("figure").querySelector("code").textContent.replace(/\n$/, "");
  }
  return button.dataset.copy;
}

async function write(text) {
  // Safari lets a page write only while it handles the click; a promise inside a
  // ClipboardItem keeps that moment open.
  if (window.ClipboardItem && navigator.clipboard?.write) {
    const blob = Promise.resolve(text).then((value) => new Blob([value], { type: "text/plain" }));
    return navigator.clipboard.write([new ClipboardItem({ "text/plain": blob })]);
  }
  return navigator.clipboard.writeText(await text);
}

function label(id) {
  return document.getElementById(id)?.textContent ?? "";
}

async function copy(button, say) {
  try {
    await write(textOf(button));
    button.dataset.copied = "";
    say(label("label-copied"));
  } catch {
    button.dataset.copyFailed = "";
    say(label("label-copy-failed"));
  }
  setTimeout(() => {
    delete button.dataset.copied;
    delete button.dataset.copyFailed;
  }, SHOWN_MS);
}

export function installCopying(say) {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.copy");
    if (button) copy(button, say);
  });
}
