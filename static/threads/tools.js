// The tools of answers, as cards. Their places come with the text, the same for
// everybody; what stands in them comes by itself, in the reader's language. A card is
// replaced only when its tool is in another state, so what is open stays open.

export function toolsIn(element) {
  return element.querySelector(":scope > .tools");
}

// What the reader has opened or written in one card is taken over by the next.
function keep(shown, card) {
  const fold = card.querySelector("details");
  if (fold && shown.querySelector("details")?.open) fold.open = true;
  const draft = shown.querySelector("textarea");
  const area = card.querySelector("textarea");
  if (draft && area && draft.value !== draft.defaultValue) area.value = draft.value;
}

// A whole answer that takes the place of another copy of it.
export function keepTools(shown, cell) {
  for (const card of cell.querySelectorAll(".tool")) {
    const twin = shown.querySelector(`#${card.id}`);
    if (twin) keep(twin, card);
  }
}

// A state never goes back: what comes late on a slow line is older than what is shown.
const BEFORE_THE_END = ["waiting", "allowed", "running"];

function rank({ dataset }) {
  const place = BEFORE_THE_END.indexOf(dataset.state);
  return place < 0 ? BEFORE_THE_END.length : place;
}

function isNews(shown, card) {
  if (shown.dataset.state === card.dataset.state) return card.querySelector(".said:not(:empty)") !== null;
  return rank(card) >= rank(shown);
}

function put(shown, card) {
  const hadFocus = shown.contains(document.activeElement);
  keep(shown, card);
  shown.replaceWith(card);
  if (hadFocus) (card.querySelector("textarea") ?? card.querySelector("summary"))?.focus({ preventScroll: true });
}

// Puts cards in their places; returns what is to be said aloud of them, once.
export function putTools(html) {
  const news = [];
  const { content } = Object.assign(document.createElement("template"), { innerHTML: html });
  for (const section of content.querySelectorAll(".tools")) {
    const place = document.getElementById(section.id);
    if (!place) continue;
    for (const card of section.querySelectorAll(".tool")) {
      const shown = document.getElementById(card.id);
      if (shown && !isNews(shown, card)) continue;
      if (shown?.dataset.state !== card.dataset.state) news.push(card.dataset.said);
      if (shown) put(shown, card);
    }
    if (!place.hasChildNodes()) place.append(...section.childNodes);
  }
  return news.join(" ");
}
