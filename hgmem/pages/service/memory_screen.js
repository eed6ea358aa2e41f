// A memory: watched while its question is answered, looked at afterwards, continued, replayed, forked, compared.

import { captionSoon } from "../shared/captions.js";
import { button, make, plural } from "../shared/elements.js";
import { frame, present } from "../shared/frame.js";
import { at, view } from "../shared/memory.js";
import { begin, questionForm } from "./ask.js";
import { isBusy, live, stop } from "./live.js";
import { attempt, careful, empty, here, href, may, say, systems, trouble } from "./place.js";
import { openPassage, readChunk } from "./passage.js";
import { get, path, post, query, remove } from "./server.js";

const AGAIN = 3000; // milliseconds until a memory that another process answers is read again
const STATES = {
  answered: "Answered", no_evidence: "No evidence was found", unanswered: "No answer was wanted", running: "Being answered",
  interrupted: "Interrupted: it can go on", pruned: "Pruned: its answers alone are kept", pruning: "Being deleted",
};

// Scripts that come from elsewhere than a memory: the graph library, once it is needed.
const library = async () => {
  if (typeof cytoscape === "function") return;
  await import("../library/cytoscape.min.js").catch(() => trouble("The library that draws pictures is missing: the lists have all that it would show."));
};

const cost = (scene) => {
  const sum = (name) => [...scene.steps, ...scene.answers].reduce((all, one) => all + (one.cost?.[name] ?? 0), 0);
  const seconds = scene.steps.reduce((all, one) => all + (one.seconds || 0), 0);
  const calls = sum("requests");
  const spent = calls ? `${plural(calls, "call")} of the model · ${sum("prompt_tokens").toLocaleString("en")} tokens in, ${sum("completion_tokens").toLocaleString("en")} out`
    : "No call of a language model";
  return `${spent}${seconds >= 0.1 ? ` · ${seconds.toFixed(1)} s` : ""}`;
};

const about = (scene) => [
  STATES[scene.status] ?? scene.status, scene.steps.length ? plural(scene.steps.length, "step") : "", scene.points.length ? `${plural(scene.points.length, "point")} ever` : "",
  [scene.system, scene.model].filter(Boolean).join(", "), scene.created.slice(0, 16).replace("T", " "),
].filter(Boolean).join(" · ");

const further = (scene, known) => {
  const box = make("section", { id: "further" });
  if (!may("ask") || scene.status === "pruned" || scene.status === "pruning" || (known && !known.continues)) return box;
  const go = (question) => begin(scene.corpus, { question, memory: scene.memory });
  if (["interrupted", "running"].includes(scene.status) && live.state !== "asking") {
    box.append(make("p", { className: "quiet" }, "It was not finished."), button("Go on", () => go(""), { className: "main" }));
  } else if (scene.answers.length) {
    box.append(questionForm("Further question", "Ask further: this memory knows what it found", go));
  }
  return box;
};

const actions = (scene, known) => {
  const replay = make("a", { className: "button", href: `${path("memories", scene.memory)}/replay`, target: "_blank", rel: "noopener" }, "Replay page");
  const compare = make("a", { className: "button", href: href("c", scene.corpus, "memories", "with", scene.memory) }, "Compare…");
  const gone = careful("Delete", "Delete it for good?", async () => {
    await remove(path("memories", scene.memory));
    location.hash = href("c", scene.corpus, "memories");
  });
  const fork = button("Fork here", () => attempt(async () => {
    const made = await post(`${path("memories", scene.memory)}/fork${query({ step: view.now || "" })}`, {});
    location.hash = href("m", made.memory);
  }), { title: "A new memory that begins as this one was at the end of the step that is shown" });
  const continues = may("ask") && known?.continues && scene.steps.length > 0;
  return [replay, compare, continues ? fork : "", may("ask") ? gone : ""];
};

const skeleton = (question) => [
  make("header", { className: "title" }, make("div", {}, make("h1", { id: "question", tabIndex: -1 }, question), make("p", { id: "about" })),
    make("div", { id: "actions" })),
  ...frame("main"),
];

const put = async (scene, again) => {
  if (!at("about")) return;
  view.read = readChunk(scene);
  view.follow = (citation) => openPassage(scene.corpus, citation);
  present(scene, { again });
  window.hgmem = view.cy; // for those who look at it with the browser's own tools
  const busy = isBusy() && (!scene.memory || live.memory === scene.memory);
  at("about").textContent = `${about(scene)}${busy ? "" : ` · ${cost(scene)}`}`;
  if (!busy && !at("further")) {
    const known = (await systems()).find((one) => one.name === scene.system);
    if (!at("about")) return; // one has gone elsewhere meanwhile
    at("further")?.remove();
    at("answer").after(further(scene, known));
    at("actions").replaceChildren(...actions(scene, known));
  }
};

// Show a question while it is answered. Events come faster than anybody reads: a picture of them a frame is enough.
const watch = async ({ page, signal }) => {
  page.replaceChildren(...skeleton(live.scene.question || "Going on…"));
  const progress = make("div", { id: "progress" }, make("span", { id: "line" }), make("span", { id: "cost", className: "quiet" }), button("Stop", stop, { id: "stop" }));
  page.querySelector("header.title").after(progress);
  const soon = empty("What it looks for, what it reads and what it remembers appear here as they come.");
  at("side").prepend(soon);
  let again = false;
  let due = false;
  const paint = async () => {
    due = false;
    if (signal.aborted) return;
    await put(live.scene, again);
    soon.hidden = live.scene.steps.length > 0;
    again = true;
    if (signal.aborted || !at("line")) return;
    at("line").textContent = live.line;
    at("cost").textContent = cost(live.scene);
  };
  live.heard = (name) => {
    if (signal.aborted) return;
    if (name === "AnswerToken" && at("writing")) {
      at("writing").textContent = live.scene.writing;
      at("line").textContent = live.line;
      return;
    }
    if (name === "QuestionAccepted") history.replaceState(null, "", href("m", live.memory));
    if (name === "end") return ended({ page, signal });
    if (name === "Planned" || name === "Answered") say(live.line);
    if (!due) requestAnimationFrame(paint);
    due = true;
  };
  await paint();
  if (!isBusy()) await ended({ page, signal });
};

const ended = async ({ page, signal }) => {
  const { problem, memory, line } = live;
  live.heard = () => {};
  let there = Boolean(memory);
  if (memory) {
    history.replaceState(null, "", href("m", memory));
    await read({ page, memory, signal }).catch((error) => { there = error.status !== 404; }); // what went wrong is told below
  }
  if (problem) {
    const back = there ? ["Go on", () => begin(here.corpus, { question: "", memory })] : ["Ask again", () => { location.hash = href("c", here.corpus); }];
    trouble(problem.message, back);
    if (!memory) page.replaceChildren(make("main", {}, empty("The question was not answered.", make("p", {}, make("a", { href: href("c", here.corpus) }, "Ask again")))));
  } else if (line.startsWith("Stopped")) {
    trouble(line);
  }
};

// Show a memory as it is stored. One that is still being answered elsewhere is read again and again.
const read = async ({ page, memory, signal, navigation }) => {
  const scene = await get(`${path("memories", memory)}/scene`, signal);
  navigation?.(scene.corpus, "memories");
  here.corpus = scene.corpus;
  page.replaceChildren(...skeleton(scene.question));
  await put(scene, false);
  if (scene.status === "running") setTimeout(() => { if (!signal.aborted) renew({ page, memory, signal, steps: scene.steps.length }); }, AGAIN);
};
const renew = async ({ page, memory, signal, steps }) => {
  try {
    const scene = await get(`${path("memories", memory)}/scene`, signal);
    if (signal.aborted) return;
    if (scene.status !== "running") return read({ page, memory, signal });
    if (scene.steps.length !== steps) await put(scene, true);
    setTimeout(() => { if (!signal.aborted) renew({ page, memory, signal, steps: scene.steps.length }); }, AGAIN);
  } catch (error) {
    if (error.name !== "AbortError") trouble(error.message, ["Read again", () => { trouble(); renew({ page, memory, signal, steps }); }]);
  }
};

export const show = async ({ page, given: [memory], signal, navigation }) => {
  await library();
  addEventListener("resize", captionSoon, { signal });
  signal.addEventListener("abort", () => { live.heard = () => {}; });
  if (memory === "now" || (isBusy() && live.memory === memory)) {
    if (!live.scene) throw new Error("no question is being asked in this tab: ask one");
    navigation(live.scene.corpus, "memories");
    return watch({ page, signal });
  }
  return read({ page, memory, signal, navigation });
};
