// Requests to the service, and the events of a question.

const GONE = "The service does not answer: see that it runs, then try again.";
export const BROKEN = "The service went away before the answer was complete. What was finished is stored: go on with this memory.";
const COMMAND = /: [^:]*`hgmem .*$/; // what to do, at the end of a problem, in a terminal
const AT_ONCE = 4; // questions that the tabs of a browser ask at a time: it opens six connections to a host

export class Problem extends Error {
  constructor(detail, status = 0) {
    super(detail);
    this.status = status;
  }
}

const answered = async (path, options) => {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem(GONE);
  }
  if (response.ok) return response;
  const found = await response.json().catch(() => ({}));
  const detail = response.status === 404 ? found.detail?.replace(COMMAND, "") : found.detail; // the page has links of its own
  throw new Problem(detail || `The service answered ${response.status}: try again.`, response.status);
};

const sent = (body) => ({ method: "POST", body: JSON.stringify(body), headers: { "Content-Type": "application/json" } });

export const get = async (path, signal) => (await answered(path, { signal })).json();
export const post = async (path, body) => (await answered(path, sent(body))).json();
export const upload = async (path, file) => (await answered(path, { method: "POST", body: file, headers: { "Content-Type": "application/octet-stream" } })).json();
export const order = (path) => answered(path, { method: "POST" });
export const remove = (path) => answered(path, { method: "DELETE" });
export const path = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;
export const query = (given) => `?${new URLSearchParams(Object.entries(given).filter(([, value]) => value !== "" && value != null))}`;

// The events of a question as pairs of name and value. One that ends without an answer raises a problem.
export async function* events(where, body, signal) {
  const options = sent(body);
  options.headers.Accept = "text/event-stream";
  const response = await answered(where, { ...options, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  let whole = false;
  for (;;) {
    const piece = await reader.read().catch((error) => { throw error.name === "AbortError" ? error : new Problem(BROKEN); });
    if (piece.done) break;
    const parts = (rest + piece.value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const [, name] = part.match(/^event: (.*)$/m) ?? [];
      const [, data] = part.match(/^data: (.*)$/m) ?? [];
      if (!name) continue; // a comment that keeps the connection open
      const value = JSON.parse(data);
      if (name === "Problem") throw new Problem(value.detail, value.status);
      whole ||= name === "Answered";
      yield [name, value];
    }
  }
  if (!whole) throw new Problem(BROKEN);
}

// Do work that holds a connection, once fewer than four tabs do such. `waits` is called if that takes its turn.
export const inTurn = async (waits, work) => {
  if (!navigator.locks) return work(); // of a page without https, which only a network of one's own should have
  const slot = (number) => `hgmem-question-${number}`;
  for (let number = 0; number < AT_ONCE; number += 1) {
    const done = await navigator.locks.request(slot(number), { ifAvailable: true }, async (lock) => (lock ? { value: await work() } : null));
    if (done) return done.value;
  }
  waits();
  return navigator.locks.request(slot(Math.floor(Math.random() * AT_ONCE)), work);
};
