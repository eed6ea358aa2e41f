// Where things stand: found once, when they enter the picture, and kept as long as they stay in it.

import { lettering } from "./captions.js";
import { origin, view } from "./memory.js";
import { isLarge } from "./picture.js";

const MARGIN = innerWidth < 760 ? 24 : 64; // pixels around the whole picture
const ROOMY = 60; // points up to which captions get room of their own
const WORK = 8_000_000; // iterations times pairs of nodes, of a memory that is drawn as a whole
const QUICK = 100; // iterations for a part of a large memory, which is laid out at each step
const SLICE = 400_000; // of them in a frame: between frames the browser does what else there is to do

let placing = null; // a promise, while places are found
let layout = null; // the latest
const nextFrame = () => new Promise(requestAnimationFrame);
const placeAll = async () => {
  try {
    await nextFrame();
    while (view.cy?.nodes(".coming").nonempty()) {
      const coming = view.cy.elements(".coming");
      try {
        await placeOnce(view.cy, coming.nodes());
      } finally {
        coming.removeClass("coming"); // whatever fails, it is seen
      }
    }
  } finally {
    placing = null;
  }
};
// Find places for what is `coming`, which is not seen until then, and resolve when all have one.
export const place = () => (placing ??= placeAll());
// Take the picture away: once its layout has ended, which still moves it in the frame after it is stopped.
export const erase = () => {
  const { cy } = view;
  view.cy = null;
  layout?.stop();
  (placing ?? Promise.resolve()).finally(() => cy?.destroy());
};

// What was revised is said of the same things, so its versions stand together. What stood already stays where it is.
const placeOnce = async (cy, fresh) => {
  const { scene, points } = view;
  const versions = cy.nodes(".point").map((node) => { // found now: the next step may take a first version away meanwhile
    const point = points.get(node.id().slice(2));
    const first = origin(point);
    return { node, first: cy.getElementById(`p:${first.uid}`), age: point.born - first.born };
  }).filter(({ node, first }) => first.nonempty() && !first.same(node));
  const later = cy.collection(versions.map(({ node }) => node));
  const counted = cy.elements().difference(later).difference(later.connectedEdges());
  const old = counted.nodes().difference(fresh);
  const centre = old.nonempty() ? old.boundingBox({ includeLabels: false }) : { x1: 0, y1: 0, w: 1200, h: 800 };
  const middle = { x: centre.x1 + centre.w / 2, y: centre.y1 + centre.h / 2 };
  counted.nodes().intersection(fresh).forEach((node, index) => { // a spiral: the same memory is the same picture each time
    const known = node.neighborhood("node").intersection(old);
    const from = known.nonempty() ? known[0].position() : middle;
    node.position({ x: from.x + 30 * Math.sqrt(index + 1) * Math.cos(2.4 * index), y: from.y + 30 * Math.sqrt(index + 1) * Math.sin(2.4 * index) });
  });
  old.lock();
  const pairs = counted.nodes().length ** 2;
  layout = counted.layout({
    name: "cose", animate: true, animationThreshold: Infinity, refresh: Math.max(1, Math.round(SLICE / pairs)), // it moves at its end alone
    randomize: false, fit: false, nodeDimensionsIncludeLabels: true, componentSpacing: 90,
    nodeRepulsion: () => 90000, idealEdgeLength: () => 70, edgeElasticity: () => 80, gravity: 0.6,
    numIter: isLarge() ? QUICK : Math.max(40, Math.min(700, Math.round(WORK / pairs))),
    boundingBox: { x1: middle.x - 600, y1: middle.y - 400, w: 1200, h: 800 },
  });
  await new Promise((over) => {
    layout.one("layoutstop", over);
    layout.run();
  });
  await nextFrame(); // so that this is a task of its own
  if (cy !== view.cy) return;
  old.unlock();
  for (let round = 0; old.empty() && scene.points.length <= ROOMY && round < 3; round += 1) {
    cy.fit(counted, MARGIN); // captions keep their size on the screen, so they take more room the farther one is
    spread(counted.nodes().toArray(), Math.max(1, Math.min(2, 1 / cy.zoom())));
  }
  for (const { node, first, age } of versions) { // what was taken away knows where it stood
    const { x, y } = first.position();
    node.position({ x: x + 16 * age, y: y + 26 * age });
  }
};

// Nodes and captions that lie on each other are pushed apart, each along the shorter way; pages are wider than high.
const spread = (nodes, scale) => {
  const boxes = nodes.map((node) => ({ node, ...node.position(), ...extent(node, scale) }));
  for (let round = 0, moved = true; moved && round < 60; round += 1) {
    moved = false;
    boxes.forEach((one, index) => boxes.slice(index + 1).forEach((other) => {
      const x = Math.min(one.x + one.right, other.x + other.right) - Math.max(one.x - one.left, other.x - other.left);
      const y = Math.min(one.y + one.down, other.y + other.down) - Math.max(one.y - one.up, other.y - other.up);
      if (x <= 0 || y <= 0) return;
      moved = true;
      const [along, by] = x < 1.8 * y ? ["x", x / 2 + 1] : ["y", y / 2 + 1];
      const sign = one[along] <= other[along] ? 1 : -1;
      one[along] -= sign * by;
      other[along] += sign * by;
    }));
  }
  for (const { node, x, y } of boxes) node.position({ x, y });
};
const extent = (node, scale) => {
  const { width, height } = lettering(node);
  return node.hasClass("point")
    ? { left: (scale * width) / 2, right: (scale * width) / 2, up: 26, down: 32 + scale * height }
    : { left: 14, right: 20 + scale * width, up: 10 * scale, down: 10 * scale };
};

export const whole = () => {
  if (!view.cy) return;
  const seen = view.cy.nodes().not(".away");
  if (seen.empty()) return;
  view.cy.fit(seen, MARGIN);
  view.cy.panBy({ x: 0, y: -MARGIN / 3 }); // captions hang below their points
};
export const zoom = (factor) => {
  const { cy } = view;
  cy?.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });
};
