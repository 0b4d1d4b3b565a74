// Makes elements from text, never from markup, so that descriptions cannot contain scripts.

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (value === true) made.setAttribute(key, "");
    else if (value !== undefined && value !== null && value !== false) made.setAttribute(key, value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

// Text with `code` in it.
export function inline(text) {
  return text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));
}

// A path that may break at its slashes.
export function breakable(path) {
  return path.split("/").flatMap((part, index) => (index ? ["/", element("wbr"), part] : [part]));
}

// Paragraphs and lists: the part of Markdown that the descriptions use.
export function prose(text) {
  const blocks = (text ?? "").split(/\n\s*\n/).filter((block) => block.trim());
  return blocks.map((block) => {
    const lines = block.trim().split("\n");
    if (!lines.every((line) => line.startsWith("- "))) return element("p", {}, inline(block.trim()));
    return element("ul", {}, lines.map((line) => element("li", {}, inline(line.slice(2)))));
  });
}

// A section that is built when it is first opened, so that recursive types are not expanded without end.
export function folded(properties, summary, build) {
  const section = element("details", properties, element("summary", {}, summary));
  section.addEventListener("toggle", () => section.open && section.append(...[build()].flat()), { once: true });
  return section;
}
