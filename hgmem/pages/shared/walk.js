// A walk from place to place, drawn as it went: places appear with their steps, and strong trails are thick.

import { shortened } from "./elements.js";
import { view } from "./memory.js";

const walkPart = (keep) => new Map((view.scene.walk ?? []).filter(keep).map((hit) => [hit.uid, hit]));
export const places = () => walkPart((hit) => hit.kind !== "Passage" && hit.kind !== "Summary");
const readings = () => walkPart((hit) => hit.kind === "Passage");

export const walkElements = () => {
  const known = places();
  const walked = view.scene.walk.filter((hit) => hit.source && hit.source !== hit.uid && known.has(hit.source) && known.has(hit.uid));
  return [
    ...[...known.values()].map((hit) => ({
      group: "nodes", classes: `entity place ${hit.kind === "Entity" ? "" : "built"} ${hit.source ? "" : "seed"}`,
      data: { id: `w:${hit.uid}`, label: shortened(hit.text, 48), size: hit.kind === "Entity" ? 18 : 26, colour: "#6a7280" },
    })),
    ...walked.map((hit, index) => ({
      group: "edges", classes: `walked ${hit.strategy}`,
      data: { id: `w${index}`, source: `w:${hit.source}`, target: `w:${hit.uid}`, width: 1.5 + 6 * Math.max(0, Math.min(1, hit.score)) },
    })),
  ];
};

export const walkLooks = (tone) => [
  { selector: "node.place", style: { "background-color": tone("faint") } },
  { selector: "node.place.built", style: { shape: "round-rectangle", "background-color": tone("revise") } },
  { selector: "node.place.seed", style: { "border-width": 3, "border-color": tone("ink") } },
  { selector: "node.place.read", style: { "background-color": tone("point") } },
  { selector: "node.place.here", style: { "border-width": 5, "border-color": tone("insert"), "border-opacity": 1 } },
  { selector: "edge.walked", style: {
    width: "data(width)", "line-color": tone("faint"), "target-arrow-color": tone("faint"), "target-arrow-shape": "triangle",
    "curve-style": "bezier",
  } },
  { selector: "edge.walked.replay", style: { "line-color": tone("point"), "target-arrow-color": tone("point") } },
];

export const paintWalk = () => {
  const { cy, now, numbers } = view;
  const read = readings();
  for (const [uid, hit] of places()) {
    const node = cy.getElementById(`w:${uid}`);
    node.toggleClass("away", hit.step > now);
    node.toggleClass("here", hit.step === now && now > numbers[0]);
    node.toggleClass("read", read.has(uid) && read.get(uid).step <= now);
  }
};
