// Elements of the page, always made by hand: text of documents is never read as markup.

const SAID = { insert: "inserted", revise: "revised", merge: "merged", retire: "retired", drop: "dropped" };
const CAPTION = 64; // characters of a point that its caption has

const make = (tag, properties = {}, ...children) => {
  const { mark, ...rest } = properties;
  const element = Object.assign(document.createElement(tag), rest);
  if (mark) element.style.setProperty("--mark", mark);
  element.append(...children.filter((child) => child !== null && child !== ""));
  return element;
};
const shortened = (text, most = CAPTION) => (text.length <= most ? text : `${text.slice(0, most - 1).trimEnd()}…`);
const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
const link = (href, act, ...children) =>
  make("a", { href, onclick: (event) => { event.preventDefault(); act(); } }, ...children);
const pointLink = (uid, most = 110) => {
  const point = points.get(uid);
  if (!point) return make("span", { className: "quiet" }, uid);
  return link(`#${uid}`, () => choose("p", uid, true), shortened(point.description, most));
};
