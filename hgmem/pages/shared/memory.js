// The memory that is looked at: its scene, the step and the thing that are chosen, and what is alive when.

export const view = {
  scene: null, points: new Map(), successors: new Map(), numbers: [], last: 0, now: 0, chosen: null, // chosen: kind, uid
  cy: null, // the picture, if this browser draws one
  // What only the page of a service does: put the text of a chunk into an element, and go to the passage of a citation.
  read: null, follow: null,
};
export const take = (scene) => {
  const numbers = scene.steps.map((step) => step.number);
  Object.assign(view, {
    scene, numbers, last: numbers.length ? numbers[numbers.length - 1] : 0,
    points: new Map(scene.points.map((point) => [point.uid, point])),
    successors: new Map(scene.points.flatMap((point) => point.parts.map((part) => [part, point]))),
  });
};

export const at = (id) => document.getElementById(id);
export const alive = (point, step) => point.born <= step && (point.died === null || point.died > step);
export const leaving = (point, step) => point.died === step && point.born < step;
export const origin = (point) => {
  const { points } = view;
  while (point.kind === "revise" && points.has(point.parts[0])) point = points.get(point.parts[0]);
  return point;
};
// A citation's name in the address: the number of its answer, and its own.
export const quoteOf = (citation) => `${view.scene.answers.findIndex((answer) => answer.citations.includes(citation))}-${citation.marker}`;
export const stepOf = (number) => view.scene.steps.find((step) => step.number === number);
