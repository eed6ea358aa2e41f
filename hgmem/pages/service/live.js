// A question that is being answered: its events become a scene, which the same picture shows as a finished memory's.

import { BROKEN, get, events, inTurn, order, path, Problem } from "./server.js";

const fresh = () => ({ state: "idle", memory: "", scene: null, line: "", problem: null, controller: null, stopping: false });
export const live = { ...fresh(), heard: () => {} }; // `heard`: called after each event
export const isBusy = () => live.state === "waiting" || live.state === "asking";

const blank = (corpus, question) => ({
  corpus, question, system: "", model: "", status: "running", memory: "", created: "", points: [], entities: {}, chunks: {}, steps: [],
  walk: [], answers: [], writing: "",
});

const stepAt = (number) => {
  let step = live.scene.steps.find((one) => one.number === number);
  if (!step) {
    step = { number, question: live.scene.question, strategy: "", judgement: null, premise: "", open: [], filters: {}, notes: [], subqueries: [], operations: [], planned: [] };
    live.scene.steps.push(step);
  }
  return step;
};

// A point that an operation made, until its step is stored: then its entities and passages come with the scene.
const applied = ({ step, operation, description }) => {
  const { scene } = live;
  stepAt(step).operations.push(operation);
  for (const uid of operation.parts) {
    const part = scene.points.find((one) => one.uid === uid);
    if (part) Object.assign(part, { died: step, retired: operation.kind === "retire" ? operation.reason : "" });
  }
  if (!operation.point || operation.kind === "retire" || operation.kind === "drop" || scene.points.some((one) => one.uid === operation.point)) return;
  scene.points.push({
    uid: operation.point, description, kind: operation.kind, parts: operation.parts, born: step, died: null, retired: "", inferred: false,
    entities: [], chunks: [], deleted: 0,
  });
};

const stored = async () => {
  const { question, writing } = live.scene;
  live.scene = { ...(await get(`${path("memories", live.memory)}/scene`)), question, writing };
};

const HEARD = {
  QuestionAccepted: async (event) => {
    Object.assign(live, { memory: event.memory, line: "The question has its memory." });
    if (event.steps) await stored();
    live.state = "asking";
    Object.assign(live.scene, { memory: event.memory, question: event.question, status: "running", answers: live.scene.answers });
  },
  StepStarted: (event) => {
    stepAt(event.step).subqueries = event.subqueries.map((one) => ({ ...one, targets: one.targets ?? [] }));
    live.line = `Step ${event.step}: looking for ${event.subqueries[0]?.text ?? "evidence"}`;
  },
  EvidenceFound: (event) => {
    const step = stepAt(event.step);
    step.strategy = event.strategy;
    live.line = `Step ${event.step}: read ${event.chunks} passages about ${event.names.slice(0, 3).join(", ") || "it"}; thinking`;
    step.notes = [`Found ${event.chunks} passages, ${event.entities} entities and ${event.relations} relations: ${event.names.slice(0, 12).join(", ")}`];
  },
  OperationApplied: (event) => {
    applied(event);
    live.line = `Step ${event.step}: memory grows`;
  },
  Planned: async (event) => {
    live.line = event.judgement === "sufficient" ? "Memory suffices" : `Step ${event.step} is stored`;
    await stored();
  },
  AnswerToken: (event) => {
    live.scene.writing += event.text;
    live.line = "Writing the answer";
  },
  Answered: async () => {
    live.scene.writing = "";
    await stored();
    live.line = "Answered";
  },
};

// Ask, and resolve to the memory as soon as there is one. What goes wrong before is thrown, afterwards it is kept in
// `live.problem`. `waits` is called if other tabs have to be done first. The service goes on if this page is left.
export const ask = (corpus, body, waits) => new Promise((accepted, refused) => {
  live.controller?.abort();
  const controller = new AbortController();
  Object.assign(live, fresh(), { state: "waiting", scene: blank(corpus, body.question), controller, line: "Asking" });
  const end = (problem) => {
    if (live.controller !== controller) return; // another question was asked meanwhile
    Object.assign(live, { state: problem ? "ended" : "done", controller: null });
    if (problem?.name === "AbortError" || (problem && live.stopping)) live.line = "Stopped. What was finished is stored.";
    else if (problem?.status === 404 && live.memory) live.problem = new Problem("This memory is not found: it was deleted.", { status: 404 });
    else if (problem instanceof Problem && !problem.status && live.memory) live.problem = new Problem(BROKEN); // a request of this page may have met it first
    else live.problem = !problem || problem instanceof Problem ? problem : new Problem(`This page failed (${problem.message}): load it again.`);
    if (live.memory) accepted(live.memory);
    else refused(problem);
    live.heard("end");
  };
  inTurn(waits, async () => {
    for await (const [name, event] of events(`${path("corpora", corpus)}/questions?keep=true`, body, controller.signal)) {
      if (live.controller !== controller) return;
      await HEARD[name]?.(event);
      if (live.memory) accepted(live.memory);
      live.heard(name);
    }
  }).then(() => end(null), end);
});
export const stop = async () => {
  const { controller } = live;
  live.stopping = true;
  await order(`${path("memories", live.memory)}/stop`).catch((error) => { live.stopping = false; throw error; });
  controller?.abort();
};
