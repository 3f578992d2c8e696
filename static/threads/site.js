// What every page does when scripts run: say so to the styles, and submit a
// choice as soon as it is made. Without scripts each form has its own button.

document.documentElement.classList.add("scripted");

document.addEventListener("change", (event) => {
  if (event.target.matches("[data-submit-on-change]")) event.target.form.requestSubmit();
});
