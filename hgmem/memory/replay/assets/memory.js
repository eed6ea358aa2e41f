// The memory that the page was made of, the step and the thing that are looked at, and what is alive when.

const scene = JSON.parse(document.getElementById("scene").textContent);
const at = (id) => document.getElementById(id);
const points = new Map(scene.points.map((point) => [point.uid, point]));
const successors = new Map(scene.points.flatMap((point) => point.parts.map((part) => [part, point])));
const numbers = scene.steps.map((step) => step.number);
const last = numbers.length ? numbers[numbers.length - 1] : 0;

let now = last;
let chosen = null;

const alive = (point, step) => point.born <= step && (point.died === null || point.died > step);
const leaving = (point, step) => point.died === step && point.born < step;
const origin = (point) => {
  while (point.kind === "revise" && points.has(point.parts[0])) point = points.get(point.parts[0]);
  return point;
};
const stepOf = (number) => scene.steps.find((step) => step.number === number);
