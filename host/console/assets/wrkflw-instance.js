// <wrkflw-instance>: one instance inside of a page of a product, with what the person of the page's session may decide. The host renders
// the parts; this shows them in a shadow tree, sends forms, and reads anew what changes. See docs/embedding.md.

const OWN = new URL(import.meta.url).origin;
// At least so long between two updates, in milliseconds. Changes in between are shown together.
const PAUSE = 100;
// After so long a stream that ended is asked for again; after the longer time one that was refused.
const SOON = 1_000;
const AGAIN = 30_000;
// Where content is rendered by the host, the policy of Trusted Types has nothing to add.
const plain = { createHTML: (text) => text };
// A second copy of this module, such as that of another host, defines nothing and makes no second policy.
const isFirst = !customElements.get("wrkflw-instance");
const policy = (isFirst && globalThis.trustedTypes?.createPolicy("wrkflw", plain)) || plain;

const sheets = new Map();

// The styles, once for each version of a host.
function sheet(address) {
  if (!sheets.has(address)) {
    const read = async () => {
      const answer = await fetch(address, { credentials: "omit" });
      if (!answer.ok) throw new Error(`${address} answered ${answer.status}`);
      return new CSSStyleSheet().replace(await answer.text());
    };
    sheets.set(address, read().catch((error) => {
      sheets.delete(address);
      throw error;
    }));
  }
  return sheets.get(address);
}

function wait(time, signal) {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, time);
    signal.addEventListener("abort", end);
  });
}

class WrkflwInstance extends HTMLElement {
  static observedAttributes = ["entity", "instance", "tokens", "host", "lang"];

  #root = this.attachShadow({ mode: "open" });
  #token;
  // Ends everything that runs for the present attributes.
  #life;
  // What each part was before links and moments were made the page's own.
  #parts = {};
  // The number of the last request, and of the one whose answer is shown: an older answer comes too late.
  #asked = 0;
  #shown = 0;
  #reading = false;
  #again = false;
  #sending = false;

  constructor() {
    super();
    this.#root.append(document.createElement("slot"));
    this.#root.addEventListener("click", (event) => this.#click(event));
    this.#root.addEventListener("submit", (event) => this.#submit(event));
  }

  connectedCallback() {
    this.#begin();
  }

  disconnectedCallback() {
    this.#life?.abort();
  }

  attributeChangedCallback(name, before, after) {
    if (this.#life && !this.#life.signal.aborted && before !== after) this.#begin();
  }

  /** Reads the instance anew. */
  async refresh() {
    if (this.isConnected) await this.#changed();
  }

  get #host() {
    return new URL(this.getAttribute("host") ?? OWN, document.baseURI).origin;
  }

  get #language() {
    return this.closest("[lang]")?.lang || navigator.language;
  }

  #begin() {
    this.#life?.abort();
    this.#life = new AbortController();
    const { signal } = this.#life;
    this.#token = undefined;
    this.#parts = {};
    this.#reading = this.#again = this.#sending = false;
    // Attributes and getToken that the page sets in one go count together.
    queueMicrotask(() => {
      if (signal.aborted) return;
      this.#changed();
      this.#follow(signal);
    });
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail, bubbles: true, composed: true }));
  }

  // A token of the product: by its function, or by the address of the product's server.
  async #fetchToken() {
    const about = { entity: this.getAttribute("entity"), instance: this.getAttribute("instance") };
    if (typeof this.getToken === "function") return this.getToken(about);
    if (!this.hasAttribute("tokens")) throw new Error("wrkflw-instance needs the attribute tokens or the property getToken");
    const body = new URLSearchParams(Object.entries(about).filter(([, value]) => value));
    const answer = await fetch(this.getAttribute("tokens"), { method: "POST", body, credentials: "same-origin" });
    if (!answer.ok) throw Object.assign(new Error("the product gave no token"), { status: answer.status });
    return (await answer.json()).token;
  }

  // Sends a request to the host; with a new token if the present one is refused.
  async #send(path, fields, signal) {
    for (const last of [false, true]) {
      this.#token ??= this.#fetchToken();
      const asked = this.#token;
      let token;
      try {
        token = await asked;
      } catch (error) {
        if (this.#token === asked) this.#token = undefined;
        throw error;
      }
      const headers = { authorization: `Bearer ${token}`, "accept-language": this.#language };
      const answer = await fetch(this.#host + path, { method: "POST", body: new URLSearchParams(fields), headers, credentials: "omit", signal });
      if (answer.status !== 401 || last) return answer;
      if (this.#token === asked) this.#token = undefined;
    }
  }

  // Shows the answer to these fields. `moves` puts the focus on what is new.
  async #load(fields, moves) {
    const { signal } = this.#life;
    const number = ++this.#asked;
    try {
      const answer = await this.#send("/embed/instance", fields, signal);
      const text = await answer.text();
      const whole = new DOMParser().parseFromString(policy.createHTML(text), "text/html").querySelector(".embed");
      // What is shown stays, too, while the host is busy or cannot be reached.
      if (!whole || answer.status === 429 || answer.status >= 500) throw Object.assign(new Error(`the host answered ${answer.status}`), { status: answer.status });
      const style = await sheet(this.#host + whole.dataset.sheet);
      if (signal.aborted || number < this.#shown) return;
      this.#shown = number;
      this.#root.adoptedStyleSheets = [style];
      this.#show(whole, moves);
      if (whole.dataset.decidedTask) {
        this.#tell("wrkflw-decided", { instanceId: whole.dataset.instance, taskId: whole.dataset.decidedTask, outcome: whole.dataset.decidedOutcome });
      }
      if (!answer.ok && answer.status !== 409 && answer.status !== 422) this.#tell("wrkflw-error", { status: answer.status, message: whole.textContent.trim() });
    } catch (error) {
      if (signal.aborted) return;
      this.#unreachable(error);
    }
  }

  // What is shown stays. Without anything, the content that the page gave to the element stays.
  #unreachable(error) {
    const place = this.#root.querySelector(".embed > [data-part=trouble]");
    const text = this.#root.querySelector(".embed")?.dataset.unreachable;
    if (place && text) {
      const notice = Object.assign(document.createElement("p"), { className: "notice bad", textContent: text });
      notice.setAttribute("role", "alert");
      place.replaceChildren(notice);
      this.#parts.trouble = undefined;
    }
    this.#tell("wrkflw-error", { status: error.status ?? 0, message: error.message });
  }

  #show(whole, moves) {
    const known = this.#root.querySelector(".embed");
    const isSame = known && whole.dataset.instance && known.dataset.instance === whole.dataset.instance && known.lang === whole.lang;
    if (!isSame) {
      const isFirst = !known;
      this.#parts = Object.fromEntries([...whole.children].map((part) => [part.dataset.part, part.innerHTML]));
      const own = document.importNode(whole, true);
      this.#root.replaceChildren(own);
      this.#adapt(own);
      if (isFirst && whole.dataset.instance) this.#tell("wrkflw-ready", { instanceId: whole.dataset.instance });
    } else {
      for (const part of whole.children) {
        // Whoever fills in a form goes on with it while the work changes around it.
        if (part.dataset.part === "form" && !moves) continue;
        this.#put(known.querySelector(`:scope > [data-part=${part.dataset.part}]`), part);
      }
    }
    if (moves) this.#move();
  }

  #put(place, fresh) {
    const name = fresh.dataset.part;
    if (this.#parts[name] === fresh.innerHTML) return;
    this.#parts[name] = fresh.innerHTML;
    const active = this.#root.activeElement;
    const mark = place.contains(active) ? active.dataset.path ?? active.id : undefined;
    place.replaceChildren(...document.importNode(fresh, true).childNodes);
    this.#adapt(place);
    if (mark) [...place.querySelectorAll("[data-path], [id]")].find((one) => (one.dataset.path ?? one.id) === mark)?.focus();
  }

  // The focus goes to what a person asked for: the form, or what became of it; without either, back to the actions.
  #move() {
    const order = ["[data-part=form] [role=alert]", "[data-part=form] [role=status]", "#preview h3", "[data-part=form] h2", ".banner h1", "[role=alert]"];
    const place = order.map((one) => this.#root.querySelector(one)).find(Boolean);
    if (!place) return;
    place.tabIndex = -1;
    place.focus();
  }

  // Links lead to the host, and moments are told in the language and zone of the page.
  #adapt(place) {
    for (const link of place.querySelectorAll("a[href^='/']")) {
      link.dataset.path = link.getAttribute("href");
      link.href = this.#host + link.dataset.path;
      link.target = "_blank";
      link.rel = "noopener";
    }
    const format = new Intl.DateTimeFormat(this.#language, { dateStyle: "medium", timeStyle: "short" });
    for (const time of place.querySelectorAll("time[datetime]")) time.title = format.format(new Date(time.dateTime));
  }

  // Actions of the instance are done in place; whoever asks for a new tab gets the console.
  #click(event) {
    const link = event.target.closest("a[data-path]");
    const instance = this.#root.querySelector(".embed")?.dataset.instance;
    if (!link || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
    const address = new URL(link.href);
    if (address.pathname !== `/console/instances/${instance}`) return;
    event.preventDefault();
    this.#act(address.searchParams);
  }

  #submit(event) {
    event.preventDefault();
    this.#act(new FormData(event.target, event.submitter), event.submitter);
  }

  async #act(fields, button) {
    if (this.#sending) return;
    this.#sending = true;
    const form = this.#root.querySelector("[data-part=form]");
    form?.setAttribute("aria-busy", "true");
    try {
      await this.#load([...fields], true);
    } finally {
      this.#sending = false;
      form?.removeAttribute("aria-busy");
      if (button?.isConnected) button.focus();
      if (this.#again) this.#changed();
    }
  }

  // Reads the instance at once, and again if it changed meanwhile.
  async #changed() {
    // What a person asked for comes first: an answer from before it would be older than what it shows.
    if (this.#reading || this.#sending) {
      this.#again = true;
      return;
    }
    this.#reading = true;
    const life = this.#life;
    do {
      this.#again = false;
      await this.#load([], false);
      await wait(PAUSE, life.signal);
      if (this.#life !== life) return;
    } while (this.#again && !this.#sending && !life.signal.aborted);
    this.#reading = false;
  }

  // Follows the instance while the page is seen. A hidden page has no stream: a browser allows only a few to one host.
  async #follow(life) {
    while (!life.aborted) {
      if (document.hidden) {
        await new Promise((resolve) => {
          document.addEventListener("visibilitychange", resolve, { once: true, signal: life });
          life.addEventListener("abort", resolve, { once: true });
        });
        continue;
      }
      const seen = new AbortController();
      const hide = () => document.hidden && seen.abort();
      document.addEventListener("visibilitychange", hide);
      const pause = await this.#listen(AbortSignal.any([life, seen.signal]));
      document.removeEventListener("visibilitychange", hide);
      await wait(pause, life);
    }
  }

  // Listens until the stream ends. Returns after which time to ask for one again.
  async #listen(signal) {
    try {
      const answer = await this.#send("/embed/live", [], signal);
      if (!answer.ok) return AGAIN;
      // What has happened before the stream was open is asked for once.
      this.#changed();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (;;) {
        const { done, value } = await reader.read();
        if (done) return SOON;
        if (value.includes("data:")) this.#changed();
      }
    } catch {
      return signal.aborted ? 0 : AGAIN;
    }
  }
}

if (isFirst) customElements.define("wrkflw-instance", WrkflwInstance);
