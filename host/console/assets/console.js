// What pages gain with scripts. Everything works without.

// Moments on hover, in the zone and the language of the browser.
function localise(root) {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short" });
  for (const time of root.querySelectorAll("time[datetime]")) {
    time.title = format.format(new Date(time.dateTime));
  }
}

localise(document);
document.addEventListener("htmx:after:swap", () => localise(document));
