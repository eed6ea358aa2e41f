// Elements of the page, always made by hand: text of documents is never read as markup.

export const SAID = { insert: "inserted", revise: "revised", merge: "merged", retire: "retired", drop: "dropped" };
const CAPTION = 64; // characters of a point that its caption has
const LISTED = 40; // items of a list that are shown at first

export const make = (tag, properties = {}, ...children) => {
  const { mark, ...rest } = properties;
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(rest)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  if (mark) element.style.setProperty("--mark", mark);
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
};
export const shortened = (marked, most = CAPTION) => { // without the marks of bold
  const text = marked.replaceAll("**", "");
  return text.length <= most ? text : `${text.slice(0, most - 1).trimEnd()}…`;
};
// Two versions of a text as elements, with the words that only one of them has marked.
export const changed = (before, after) => {
  const [old, fresh] = [before, after].map((text) => `${text} `.match(/\S+\s*/g) ?? []);
  const common = [...old, ""].map(() => new Uint16Array(fresh.length + 1)); // words of the longest common sequence from here on
  for (let at = old.length - 1; at >= 0; at -= 1) {
    for (let to = fresh.length - 1; to >= 0; to -= 1) {
      common[at][to] = old[at] === fresh[to] ? common[at + 1][to + 1] + 1 : Math.max(common[at + 1][to], common[at][to + 1]);
    }
  }
  const sides = [[], []];
  const add = (side, tag, word) => {
    if (side.at(-1)?.tag !== tag) side.push({ tag, words: "" });
    side.at(-1).words += word;
  };
  for (let at = 0, to = 0; at < old.length || to < fresh.length;) {
    if (old[at] === fresh[to]) {
      add(sides[0], "", old[at]);
      add(sides[1], "", old[at]);
      at += 1;
      to += 1;
    } else if (at < old.length && common[at + 1][to] >= (common[at][to + 1] ?? 0)) add(sides[0], "del", old[at++]);
    else add(sides[1], "ins", fresh[to++]);
  }
  return sides.map((side) => side.map(({ tag, words }) => (tag ? make(tag, {}, words) : words)));
};
export const plural = (count, one, many = `${one}s`) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
export const link = (href, act, ...children) =>
  make("a", { href, onclick: (event) => { event.preventDefault(); act(); } }, ...children);
export const button = (label, onclick, properties = {}) => make("button", { type: "button", onclick, ...properties }, label);

// Text with the marks of Markdown for headings, lists, code and bold as elements. `cite` makes one of a marker such as [1].
export const rich = (text, cite = (marker) => marker) => {
  const inline = (line) => line.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*|\[\d+\])/).filter(Boolean).map((piece) => {
    if (/^`.+`$/.test(piece)) return make("code", {}, piece.slice(1, -1));
    if (/^\*\*.+\*\*$/.test(piece)) return make("strong", {}, ...inline(piece.slice(2, -2)));
    return /^\[\d+\]$/.test(piece) ? cite(piece) : make("bdi", {}, piece);
  });
  const blocks = [];
  const within = (tag, child) => { // the list or paragraph that goes on, or another
    if (blocks.at(-1)?.tagName !== tag.toUpperCase() || blocks.at(-1).over) blocks.push(make(tag));
    blocks.at(-1).append(...child);
  };
  let fence = null;
  for (const line of text.split("\n")) {
    const [, heading, titled] = line.match(/^(#{1,6}) +(.*)$/) ?? [];
    const [, bullet, item] = line.match(/^\s*([-*•]|\d{1,2}[.)]) +(.*)$/) ?? [];
    if (/^\s*(```|~~~)/.test(line)) {
      if (!fence) blocks.push(make("pre", {}, fence = make("code")));
      else fence = null;
    } else if (fence) fence.append(`${line}\n`);
    else if (heading) blocks.push(make("h3", {}, ...inline(titled)));
    else if (bullet) within(/\d/.test(bullet) ? "ol" : "ul", [make("li", /\d/.test(bullet) ? { value: parseInt(bullet, 10) } : {}, ...inline(item))]);
    else if (line.trim()) within("p", [...(blocks.at(-1)?.tagName === "P" && !blocks.at(-1).over ? ["\n"] : []), ...inline(line)]);
    else if (blocks.length) blocks.at(-1).over = true; // a blank line
  }
  return blocks;
};

// A list of which the first are shown, and more when one asks for them.
export const listed = (tag, properties, items, render, most = LISTED) => {
  const list = make(tag, properties);
  const more = (from) => {
    list.append(...items.slice(from, from + most).map(render));
    const rest = items.length - from - most;
    if (rest <= 0) return;
    const item = make("li", { className: "more" }, button(`Show ${Math.min(rest, most)} more of ${rest.toLocaleString("en")}`, () => {
      item.remove();
      more(from + most);
      list.children[from + most]?.querySelector("a, button, summary")?.focus({ preventScroll: true });
    }));
    list.append(item);
  };
  more(0);
  return list;
};
