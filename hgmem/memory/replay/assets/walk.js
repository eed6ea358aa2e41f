// A walk from place to place, drawn as it went: places appear with their steps, and strong trails are thick.

const places = new Map(scene.walk.filter((hit) => hit.kind !== "Passage" && hit.kind !== "Summary").map((hit) => [hit.uid, hit]));
const readings = new Map(scene.walk.filter((hit) => hit.kind === "Passage").map((hit) => [hit.uid, hit]));
const walked = scene.walk.filter((hit) => hit.source && hit.source !== hit.uid && places.has(hit.source) && places.has(hit.uid));

const walkElements = () => [
  ...[...places.values()].map((hit) => ({
    group: "nodes", classes: `entity place ${hit.kind === "Entity" ? "" : "built"} ${hit.source ? "" : "seed"}`,
    data: { id: `w:${hit.uid}`, label: shortened(hit.text, 48), size: hit.kind === "Entity" ? 18 : 26, colour: "#6a7280" },
  })),
  ...walked.map((hit, index) => ({
    group: "edges", classes: `walked ${hit.strategy}`,
    data: { id: `w${index}`, source: `w:${hit.source}`, target: `w:${hit.uid}`, width: 1.5 + 6 * Math.max(0, Math.min(1, hit.score)) },
  })),
];

const walkLooks = (tone) => [
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

const paintWalk = () => {
  for (const [uid, hit] of places) {
    const node = cy.getElementById(`w:${uid}`);
    node.toggleClass("away", hit.step > now);
    node.toggleClass("here", hit.step === now && now > numbers[0]);
    node.toggleClass("read", readings.has(uid) && readings.get(uid).step <= now);
  }
};
