// What pages gain with scripts: moments in one's own zone, live updates, keys. Everything else works without.

// Moments on hover, in the language of the page and the zone that one chose, else that of the browser.
function localise() {
  const format = new Intl.DateTimeFormat(document.documentElement.lang, { dateStyle: "medium", timeStyle: "short", timeZone: document.documentElement.dataset.zone });
  for (const time of document.querySelectorAll("time[datetime]")) time.title = format.format(new Date(time.dateTime));
}

// At least so long between two updates of a page, in milliseconds. Changes in between are shown together.
const PAUSE = 100;
// After so long a page that got no stream asks for one again.
const AGAIN = 30_000;

// Hosts write what they count so soon, in milliseconds: until then a page of figures would not show a change.
const WRITTEN = 12_000;

// Calls `update` at once, and again if it was asked for meanwhile.
function gathered(update) {
  let [running, again] = [false, false];
  return async function ask() {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      await update();
    } finally {
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      running = false;
      if (again) {
        again = false;
        ask();
      }
    }
  };
}

// Reads a part of the page again. Who is not signed in any more is led to the sign-in; on any other failure the page stays.
async function read(address) {
  const answer = await fetch(address, { headers: { "hx-request": "true" } });
  if (answer.status === 401) location.reload();
  return answer.status === 200 ? answer.text() : "";
}

// What is done when something has changed. Only what differs is replaced, so the focus stays where it is.
const updates = {
  async instance(place) {
    const text = await read(place.dataset.address);
    const timeline = document.querySelector("#timeline") ? "#timeline:outerMorph" : undefined;
    if (text) await htmx.swap({ sourceElement: place, target: place, text, select: "#instance", swap: "outerMorph", selectOOB: timeline });
  },
  async panels(place) {
    const text = await read(place.dataset.address);
    const unfolded = [...place.querySelectorAll("details[open]")].map((one) => one.id);
    if (text) await htmx.swap({ sourceElement: place, target: place, text, select: "#panels", swap: "outerMorph" });
    for (const id of unfolded) document.getElementById(id)?.setAttribute("open", "");
  },
  async tasks(place) {
    const text = await read(place.dataset.news);
    if (text) await htmx.swap({ sourceElement: place, target: place, text, swap: "innerHTML" });
  },
};

// Follows what happens while the page is seen. A hidden page has no stream: a browser allows only a few to one host.
function follow(place) {
  const [kind] = place.dataset.live.split("=");
  const update = gathered(() => updates[kind](place));
  let later;
  const inTime = () => {
    later = undefined;
    update();
  };
  const changed = kind === "panels" ? () => (later ??= setTimeout(inTime, WRITTEN)) : update;
  const query = kind === "instance" ? `?${place.dataset.live}` : "";
  let source;
  function look() {
    source?.close();
    if (document.hidden) return;
    source = new EventSource(`/console/live${query}`);
    // What has happened before the stream was open is asked for once.
    source.onopen = changed;
    source.onmessage = changed;
    // A browser tries again by itself unless it got an answer that is no stream, such as that of a full host.
    source.onerror = () => source.readyState === EventSource.CLOSED && setTimeout(look, AGAIN);
  }
  document.addEventListener("visibilitychange", look);
  look();
}

// Moves the focus among the titles of the list; without a list, to the next task of the view that is worked through.
function move(step) {
  const titles = [...document.querySelectorAll(".row-title")];
  if (titles.length === 0) document.querySelector(`[data-key=${step > 0 ? "j" : "k"}]`)?.click();
  const at = titles.indexOf(document.activeElement);
  titles[Math.min(Math.max(at + step, 0), titles.length - 1)]?.focus();
}

// What a key stands for on this page.
const press = (key) => () => document.querySelector(`[data-key="${key}"]`)?.click();

const keys = {
  "+": press("+"),
  "-": press("-"),
  0: press("0"),
  j: () => move(1),
  k: () => move(-1),
  x: () => document.activeElement?.closest(".row")?.querySelector("[name=task]")?.click(),
  // Who opens a task by a key works through the list by keys.
  o: () => {
    const title = document.activeElement?.closest(".row")?.querySelector(".row-title");
    if (title) location.assign(title.dataset.queue ?? title.href);
  },
  a: () => document.querySelectorAll("[data-outcome]")[0]?.click(),
  r: () => document.querySelectorAll("[data-outcome]")[1]?.click(),
  c: () => document.querySelector("#comment")?.focus(),
  "/": () => document.querySelector("#find")?.focus(),
  "?": () => document.querySelector("#keys")?.showModal(),
};

document.addEventListener("keydown", (event) => {
  const find = document.querySelector("#find");
  if (event.key === "k" && (event.ctrlKey || event.metaKey) && find) {
    event.preventDefault();
    find.focus();
    return;
  }
  // From a comment to what will happen, or to its confirmation.
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    const form = event.target.form ?? document.querySelector("#act form");
    form?.querySelector("button[name=step].primary")?.click();
    return;
  }
  const typing = event.target.closest("input, textarea, select, dialog");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

// A page that leads on by itself, such as to where one signs out, too. The way back does not come past it.
const onward = document.querySelector("a[data-onward]");
if (onward) location.replace(onward.href);

localise();
document.addEventListener("htmx:after:swap", localise);
const live = document.querySelector("[data-live]");
if (live) follow(live);
