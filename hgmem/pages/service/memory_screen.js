// A memory: watched while its question is answered, looked at afterwards, continued, replayed, forked, compared.

import { inAddress } from "../shared/address.js";
import { captionSoon } from "../shared/captions.js";
import { followAddress } from "../shared/controls.js";
import { button, make, plural } from "../shared/elements.js";
import { frame, present } from "../shared/frame.js";
import { at, quoteOf, view } from "../shared/memory.js";
import { begin, questionForm } from "./ask.js";
import { isBusy, live, stop } from "./live.js";
import { attempt, careful, empty, here, href, may, say, systems, trouble, working } from "./place.js";
import { openPassage, readChunk } from "./passage.js";
import { get, order, path, post, Problem, query, remove } from "./server.js";

const AGAIN = 3000; // milliseconds until a memory that another process answers is read again
const STATES = {
  answered: "Answered", no_evidence: "No evidence was found", unanswered: "No answer was wanted", running: "Being answered",
  interrupted: "Interrupted: it can go on", pruned: "Pruned: its answers alone are kept; its steps, points and evidence were removed to save room", pruning: "Being deleted",
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

const isFresh = (scene) => scene.status === "interrupted" && scene.steps.at(-1)?.number === scene.forked_at; // a fork without a step of its own
const about = (scene) => [
  isFresh(scene) ? "Not continued yet" : STATES[scene.status] ?? scene.status, scene.steps.length ? plural(scene.steps.length, "step") : "", scene.points.length ? `${plural(scene.points.length, "point")} ever` : "",
  [scene.system, scene.model].filter(Boolean).join(", "), scene.created.slice(0, 16).replace("T", " "),
].filter(Boolean).join(" · ");

// Do something with a memory. Where that is gone, say so, and offer nothing more of it.
const still = async (scene, act) => {
  try {
    return await act();
  } catch (error) {
    if (error.status !== 404) throw error;
    at("further")?.remove();
    at("actions")?.replaceChildren(make("a", { className: "button", href: href("c", scene.corpus, "memories") }, "Other memories"));
    throw new Problem("This memory was deleted meanwhile. What is shown here was read before.");
  }
};

const further = (scene, known) => {
  const box = make("section", { id: "further" });
  if (!may("ask") || ["pruned", "pruning", "running"].includes(scene.status) || (known && !known.continues)) return box;
  const go = (question) => still(scene, () => begin(scene.corpus, { question, memory: scene.memory }));
  const on = button("Go on", () => working(on, "Going on…", () => go("")), { className: "main" });
  const fork = isFresh(scene);
  if (scene.status === "interrupted") {
    box.append(make("p", { className: "quiet" }, fork ? "Go on with the same question, or ask another." : "It was not finished: go on, or ask another question."), on);
  }
  if (scene.answers.length || scene.status === "interrupted") {
    box.append(questionForm(scene.memory, "Further question", fork ? "Ask otherwise: this fork knows what was found until then" : "Ask further: this memory knows what it found", go));
  }
  return box;
};

const actions = (scene, known) => {
  const replay = make("a", { className: "button", href: `${path("memories", scene.memory)}/replay`, target: "_blank", rel: "noopener" }, "Replay page");
  const compare = make("a", { className: "button", href: href("c", scene.corpus, "memories", "with", scene.memory) }, "Compare…");
  const gone = careful("Delete", "Delete it for good?", () => still(scene, async () => {
    await remove(path("memories", scene.memory));
    location.hash = href("c", scene.corpus, "memories");
  }));
  const fork = button("Fork here", () => working(fork, "Forking…", () => still(scene, async () => {
    const made = await post(`${path("memories", scene.memory)}/fork${query({ step: view.now || "" })}`, {});
    location.hash = href("m", made.memory);
  })), { title: "A new memory that begins as this one was at the end of the step that is shown" });
  const continues = may("ask") && known?.continues && scene.steps.length > 0;
  return [replay, compare, continues ? fork : "", may("ask") ? gone : ""];
};

const skeleton = (scene, question = scene.question) => [
  make("header", { className: "title" }, make("div", {}, scene.forked_from ? make("p", { id: "forked", className: "quiet" }, "Fork of ",
    make("a", { href: href("m", scene.forked_from) }, `memory ${scene.forked_from}`), ` at step ${scene.forked_at}`) : "",
  make("h1", { id: "question", tabIndex: -1 }, question), make("p", { id: "about" })),
    make("div", { id: "actions" })),
  ...frame("main"),
];

// Open the passage that the address names, and close another.
const followPassage = (signal) => {
  const name = inAddress("quote");
  if (at(`passage-${name}`)) return;
  document.querySelector("dialog")?.close();
  const cited = view.scene.answers.flatMap((answer) => answer.citations).find((one) => quoteOf(one) === name);
  if (cited) openPassage(view.scene.corpus, cited, name, signal);
};

const put = async (scene, again) => {
  if (!at("about")) return;
  view.read = readChunk(scene);
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

const progress = (line, end) => {
  const one = button("Stop", () => working(one, "Stopping…", end), { id: "stop" });
  return make("div", { id: "progress" }, make("span", { id: "line" }, line), make("span", { id: "cost", className: "quiet" }), one);
};

// Show a question while it is answered. Events come faster than anybody reads: a picture of them a frame is enough.
const watch = async ({ page, signal }) => {
  page.replaceChildren(...skeleton(live.scene, live.scene.question || "Going on…"));
  page.querySelector("header.title").after(progress("", stop));
  const soon = empty("What it looks for, what it reads and what it remembers appear here as they come.");
  at("side").prepend(soon);
  let again = false;
  let due = false;
  const paint = async () => {
    due = false;
    if (signal.aborted || !isBusy()) return; // at its end it is read as it is stored
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
  let there = true;
  const scene = await read({ page, memory, signal }).catch((error) => { there = error.status !== 404; }); // what went wrong is told below
  if (scene?.status === "running") return; // the line was cut, and the service goes on
  if (problem) {
    const back = there ? ["Go on", () => attempt(() => begin(here.corpus, { question: "", memory }))] : ["Ask again", () => { location.hash = href("c", here.corpus); }];
    trouble(problem.message, back);
  } else if (line.startsWith("Stopped")) {
    trouble(line);
  }
};

// Show a memory as it is stored. One that is still being answered elsewhere is read again and again.
const read = async ({ page, memory, signal, navigation, drawing }) => {
  const [scene] = await Promise.all([get(`${path("memories", memory)}/scene`, signal), drawing]);
  navigation?.(scene.corpus, "memories");
  here.corpus = scene.corpus;
  page.replaceChildren(...skeleton(scene));
  if (scene.status === "running") page.querySelector("header.title").after(progress("It is being answered, and read again every three seconds", () => order(`${path("memories", memory)}/stop`)));
  await put(scene, false);
  followPassage(signal);
  if (scene.status === "running") setTimeout(() => { if (!signal.aborted) renew({ page, memory, signal, steps: scene.steps.length }); }, AGAIN);
  return scene;
};
const renew = async ({ page, memory, signal, steps }) => {
  try {
    const scene = await get(`${path("memories", memory)}/scene`, signal);
    if (signal.aborted) return;
    if (scene.status !== "running") return read({ page, memory, signal });
    if (scene.steps.length !== steps) await put(scene, true);
    setTimeout(() => { if (!signal.aborted) renew({ page, memory, signal, steps: scene.steps.length }); }, AGAIN);
  } catch (error) {
    if (error.status === 404) attempt(() => still({ corpus: here.corpus }, () => { throw error; }));
    else if (error.name !== "AbortError") trouble(error.message, ["Read again", () => { trouble(); renew({ page, memory, signal, steps }); }]);
  }
};

export const show = async ({ page, given: [memory], signal, navigation }) => {
  const drawing = library();
  addEventListener("resize", captionSoon, { signal });
  view.follow = (citation) => openPassage(view.scene.corpus, citation, quoteOf(citation), signal);
  here.follow = () => {
    if (!at("slider")) return; // it is being read, and then shown as the address says
    followAddress();
    followPassage(signal);
  };
  signal.addEventListener("abort", () => { live.heard = () => {}; });
  if (isBusy() && live.memory === memory) {
    navigation(live.scene.corpus, "memories");
    await drawing;
    return watch({ page, signal });
  }
  return read({ page, memory, signal, navigation, drawing });
};
