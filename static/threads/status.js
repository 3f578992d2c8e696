// The one polite live region of the page: a message each time something changed.

export function say(message) {
  const region = document.getElementById("status");
  if (!region || !message) return;
  // The same words twice are news twice: an empty region in between says so.
  region.textContent = "";
  requestAnimationFrame(() => { region.textContent = message; });
}
