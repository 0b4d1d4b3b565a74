// The form that tries an operation, the response, and the same request in some languages.

import { element } from "./element.js";
import { LANGUAGES, sample } from "./sample.js";
import { example, isFile, plain, resolve } from "./schema.js";

// Longer answers are cut in the page; the shell shows all of them.
const SHOWN_CHARS_MAX = 200_000;
const SHOWN_HEADERS = ["content-type", "location", "etag", "idempotency-replayed", "retry-after", "www-authenticate", "x-request-id"];

// The language of samples that was chosen last, for the operations that are opened later.
let chosen = "shell";

function input(schema, properties) {
  const values = schema.enum ?? (schema.type === "boolean" ? [true, false] : null);
  if (!values) return element("input", { type: "text", autocomplete: "off", spellcheck: "false", ...properties });
  const shown = values.map((value) => element("option", { value: String(value) }, String(value)));
  return element("select", properties, element("option", { value: "" }, ""), shown);
}

function parameterInput(openapi, parameter) {
  const schema = plain(openapi, parameter.schema);
  const control = input(schema, { required: parameter.required, placeholder: schema.format ?? "" });
  const title = `${parameter.name} (${parameter.in})`;
  return { ...parameter, control, label: element("label", {}, title, control) };
}

// The parts of a request body that can be filled in: one text, or one control for each part of a form.
function bodyInputs(openapi, body) {
  const [mediaType, content] = Object.entries(body?.content ?? {})[0] ?? [];
  if (!mediaType) return { mediaType: null, labels: [] };
  const schema = resolve(openapi, content.schema);
  if (mediaType !== "multipart/form-data") {
    const control = element("textarea", { rows: 8, spellcheck: "false" });
    control.value = JSON.stringify(content.example ?? example(openapi, schema), null, 2);
    return { mediaType, text: control, labels: [element("label", {}, `Body (${mediaType})`, control)] };
  }
  const parts = Object.entries(schema.properties ?? {}).map(([name, part]) => {
    const target = plain(openapi, part);
    const required = (schema.required ?? []).includes(name);
    const control = isFile(target) ? element("input", { type: "file", required }) : input(target, { required });
    return { name, control, label: element("label", {}, `${name} (form)`, control) };
  });
  return { mediaType, parts, labels: parts.map((part) => part.label) };
}

function address(path, parameters) {
  const given = (place) => parameters.filter((one) => one.in === place && one.control.value !== "");
  const filled = path.replace(/\{([^}]+)\}/g, (hole, name) => {
    const parameter = given("path").find((one) => one.name === name);
    return parameter ? encodeURIComponent(parameter.control.value) : hole;
  });
  const query = new URLSearchParams(given("query").map((one) => [one.name, one.control.value])).toString();
  return new URL(`.${filled}${query ? `?${query}` : ""}`, document.baseURI);
}

// What a program needs to send the same. Placeholders of parameters without a value stay readable.
function request(url, method, headers, body, needsToken) {
  const filled = body.parts?.filter(({ control }) => control.type === "file" || control.value);
  const parts = filled?.map(({ name, control }) => ({ name, value: control.value, file: control.type === "file" && (control.files[0]?.name ?? "FILE") }));
  const text = body.text?.value;
  return { url: url.href.replace(/%7B(\w+)%7D/g, "{$1}"), method, headers, text, mediaType: body.mediaType, parts, needsToken };
}

function formData(parts) {
  const data = new FormData();
  for (const { name, control } of parts) {
    if (control.type === "file") control.files[0] && data.append(name, control.files[0]);
    else if (control.value) data.append(name, control.value);
  }
  return data;
}

// Shows an answer while it arrives, since a stream of events never ends by itself.
async function show(response, head, text, begun) {
  const duration = Math.round(performance.now() - begun);
  const headers = SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
  head.textContent = `${response.status} ${response.statusText} in ${duration} ms`;
  head.className = response.ok ? "good" : "bad";
  text.textContent = `${headers.join("\n")}\n\n`;
  let received = "";
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  for (let part = await reader?.read(); part && !part.done; part = await reader.read()) {
    received += part.value;
    if (received.length > SHOWN_CHARS_MAX) {
      text.append(part.value.slice(0, SHOWN_CHARS_MAX - received.length), "\n(the rest is not shown)");
      return reader.cancel();
    }
    text.append(part.value);
  }
  try {
    text.textContent = `${headers.join("\n")}\n\n${JSON.stringify(JSON.parse(received), null, 2)}`;
  } catch {
    // It is no JSON, and stays as it was received.
  }
}

export function attempt(openapi, { path, method, operation, parameters, needsToken }, token) {
  const inputs = parameters.map((parameter) => parameterInput(openapi, parameter));
  const body = bodyInputs(openapi, operation.requestBody);
  const code = element("pre", { tabindex: "0", class: "sample" });
  const options = Object.entries(LANGUAGES).map(([value, name]) => element("option", { value, selected: value === chosen }, name));
  const language = element("select", {}, options);
  const head = element("p", { role: "status" });
  const text = element("pre", { tabindex: "0", hidden: true });
  const send = element("button", {}, "Send");
  const stop = element("button", { type: "button", hidden: true }, "Stop");
  const headers = () => inputs.filter((one) => one.in === "header" && one.control.value).map((one) => [one.name, one.control.value]);

  const refresh = () => (code.textContent = sample(language.value, request(address(path, inputs), method, headers(), body, needsToken)));
  language.addEventListener("change", () => {
    chosen = language.value;
    refresh();
  });
  const submit = async (event) => {
    event.preventDefault();
    const abort = new AbortController();
    stop.onclick = () => abort.abort();
    [send.disabled, stop.hidden, text.hidden] = [true, false, false];
    [head.textContent, head.className, text.textContent] = ["Waiting for the answer.", "", ""];
    try {
      const sent = new Headers(headers());
      if (needsToken && token()) sent.set("Authorization", `Bearer ${token()}`);
      if (body.text) sent.set("Content-Type", body.mediaType);
      const content = body.parts ? formData(body.parts) : body.text?.value;
      const options = { method: method.toUpperCase(), headers: sent, body: content, signal: abort.signal, credentials: "omit" };
      const begun = performance.now();
      await show(await fetch(address(path, inputs), options), head, text, begun);
    } catch (error) {
      if (abort.signal.aborted) head.append(" (stopped)");
      else [head.textContent, head.className] = [`No answer: ${error.message}`, "bad"];
    }
    [send.disabled, stop.hidden] = [false, true];
  };
  const form = element("form", { class: "attempt", onsubmit: submit, oninput: refresh }, inputs.map((one) => one.label), body.labels, element("p", {}, send, " ", stop));
  refresh();
  return [form, head, text, element("label", { class: "language" }, "The same in", language), code];
}
