// A request as a program writes it: for a shell, in JavaScript, and in Python.

export const LANGUAGES = { shell: "a shell", javascript: "JavaScript", python: "Python" };

// For a shell.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

function curl({ url, method, headers, text, mediaType, parts, needsToken }) {
  const lines = [`curl ${method === "get" ? "" : `-X ${method.toUpperCase()} `}${quoted(url)}`];
  if (needsToken) lines.push('-H "Authorization: Bearer $TOKEN"');
  for (const [name, value] of headers) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
  if (text !== undefined) lines.push(`-H ${quoted(`Content-Type: ${mediaType}`)}`, `--data ${quoted(text)}`);
  for (const { name, value, file } of parts ?? []) lines.push(`-F ${quoted(file ? `${name}=@${file}` : `${name}=${value}`)}`);
  return lines.join(" \\\n  ");
}

// A JSON text as it is in both languages, with lines behind the first moved to the right.
const indented = (text) => text.trim().replaceAll("\n", "\n  ");

function javascript({ url, method, headers, text, mediaType, parts, needsToken }) {
  const all = headers.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  if (text !== undefined) all.unshift(`"Content-Type": ${JSON.stringify(mediaType)}`);
  if (needsToken) all.unshift("Authorization: `Bearer ${token}`");
  const lines = [];
  if (parts) lines.push("const body = new FormData();");
  for (const { name, value, file } of parts ?? []) {
    lines.push(`body.append(${JSON.stringify(name)}, ${file ? `await openAsBlob(${JSON.stringify(file)})` : JSON.stringify(value)});`);
  }
  if (parts?.some(({ file }) => file)) lines.unshift('import { openAsBlob } from "node:fs";\n');
  const options = [`method: ${JSON.stringify(method.toUpperCase())}`];
  if (all.length) options.push(`headers: { ${all.join(", ")} }`);
  if (parts) options.push("body");
  if (text !== undefined) options.push(`body: JSON.stringify(${indented(text)})`);
  lines.push(`const response = await fetch(${JSON.stringify(url)}, {\n  ${options.join(",\n  ")},\n});`);
  lines.push("if (!response.ok) throw new Error(await response.text());", "console.log(await response.text());");
  return lines.join("\n");
}

// A value of JSON as Python writes it.
function literal(value, indent) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const inner = `${indent}  `;
  const members = Array.isArray(value)
    ? value.map((one) => literal(one, inner))
    : Object.entries(value).map(([name, one]) => `${JSON.stringify(name)}: ${literal(one, inner)}`);
  const [open, close] = Array.isArray(value) ? "[]" : "{}";
  return members.length ? `${open}\n${inner}${members.join(`,\n${inner}`)},\n${indent}${close}` : open + close;
}

function parsed(text) {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return null;
  }
}

function python({ url, method, headers, text, mediaType, parts, needsToken }) {
  const all = headers.map(([name, value]) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  if (needsToken) all.unshift('"Authorization": f"Bearer {token}"');
  const json = text === undefined ? null : parsed(text);
  if (text !== undefined && !json) all.push(`"Content-Type": ${JSON.stringify(mediaType)}`);
  const options = [JSON.stringify(url)];
  if (all.length) options.push(`headers={${all.join(", ")}}`);
  if (json) options.push(`json=${literal(json.value, "  ")}`);
  else if (text !== undefined) options.push(`data=${JSON.stringify(text)}`);
  const files = (parts ?? []).filter(({ file }) => file).map(({ name, file }) => `${JSON.stringify(name)}: open(${JSON.stringify(file)}, "rb")`);
  const fields = (parts ?? []).filter(({ file }) => !file).map(({ name, value }) => `${JSON.stringify(name)}: ${JSON.stringify(value)}`);
  if (files.length) options.push(`files={${files.join(", ")}}`);
  if (fields.length) options.push(`data={${fields.join(", ")}}`);
  options.push("timeout=30");
  return `import requests\n\nresponse = requests.${method}(\n  ${options.join(",\n  ")},\n)\nresponse.raise_for_status()\nprint(response.text)`;
}

// The text of a request. `text` is a body in one piece, `parts` are those of a form.
export function sample(language, request) {
  return { shell: curl, javascript, python }[language](request);
}
