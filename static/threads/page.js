// Pages with the list of threads.

import { installCopying } from "./clipboard.js";
import { installComposer } from "./composer.js";
import { say } from "./status.js";

installCopying(say);

// A bar goes when its form was sent; the server forgets it too.
document.addEventListener("htmx:afterRequest", (event) => {
  const target = event.target.dataset?.dismiss;
  if (target && event.detail.successful) document.querySelector(target)?.remove();
});

// The list starts where the thread that is read stands in it.
const list = document.querySelector(".sidebar-list");
const current = list?.querySelector("[aria-current]");
if (current) list.scrollTop = current.offsetTop - list.offsetTop - list.clientHeight / 2;

// A thread's page installs its own composer, with what sending moves there.
if (!document.getElementById("thread")) installComposer();
