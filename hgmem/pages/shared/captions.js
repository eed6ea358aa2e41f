// Captions keep one size on the screen, and where there is no room for all, those that matter most are shown: of
// what is chosen, of what is new in this step, of what ties most.

import { view } from "./memory.js";

const WIDTH = { point: 150, entity: 120 }; // pixels of a line
const LETTER = { point: 12, entity: 11 }; // pixels of a font
const weight = (node) => (node.hasClass("chosen") ? 1e6 : node.hasClass("dim") ? -1e6 : 0)
  + (node.is(".new-insert, .new-revise, .new-merge") ? 1e3 : 0) + (node.hasClass("point") ? 100 : 0) + node.degree(false);
export const lettering = (node) => {
  const kind = node.hasClass("point") ? "point" : "entity";
  const letters = node.data("label").length * LETTER[kind] * 0.56;
  return {
    width: Math.min(letters, WIDTH[kind] * 0.95), // lines rarely reach the edge
    height: Math.ceil(letters / (WIDTH[kind] * 0.9)) * LETTER[kind] * 1.15,
  };
};
const room = (node, zoom) => {
  const { width, height } = lettering(node);
  const { x, y } = node.renderedPosition();
  const radius = (node.width() / 2) * zoom;
  return node.hasClass("point")
    ? { x1: x - width / 2, x2: x + width / 2, y1: y - radius, y2: y + radius + 5 + height }
    : { x1: x - radius, x2: x + radius + 4 + width, y1: y - height / 2, y2: y + height / 2 };
};
export const caption = () => {
  const { cy } = view;
  if (!cy) return;
  const zoom = cy.zoom();
  const seen = cy.nodes().filter((node) => !node.hasClass("away"));
  const ranked = seen.toArray().map((node) => [weight(node), node]).sort(([one], [other]) => other - one);
  const taken = [];
  cy.batch(() => {
    for (const kind of ["point", "entity"]) {
      seen.filter(`.${kind}`).style({ "font-size": LETTER[kind] / zoom, "text-max-width": WIDTH[kind] / zoom });
    }
    for (const [, node] of ranked) {
      const box = room(node, zoom);
      const free = !taken.some((one) => box.x1 < one.x2 && one.x1 < box.x2 && box.y1 < one.y2 && one.y1 < box.y2);
      node.toggleClass("mute", !free);
      if (free) taken.push(box);
    }
  });
};
let captioning = null;
export const captionSoon = () => {
  clearTimeout(captioning);
  captioning = setTimeout(caption, 80);
};
