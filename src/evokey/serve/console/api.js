// Calls of the service. The key stays in this tab: it is in no address, no cookie and no file.

const KEY = "evokey-key";
export const state = { collection: "default", layers: [], who: null };
// Whether the collection learns beside another search, and has no documents.
export const isLayer = () => state.layers.includes(state.collection);

export const getKey = () => sessionStorage.getItem(KEY) ?? "";
export const setKey = (key) => (key ? sessionStorage.setItem(KEY, key) : sessionStorage.removeItem(KEY));

export class ApiError extends Error {
  constructor(status, kind, message) {
    super(message);
    this.status = status;
    this.kind = kind;
  }
}

async function request(method, path, body, signal) {
  const headers = { Accept: "application/json" };
  if (getKey()) headers.Authorization = `Bearer ${getKey()}`;
  if (method !== "GET") headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body && JSON.stringify(body), signal });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, "Offline", "The service does not answer. Is it still running?");
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => ({}));
  if (answer.status === 401) window.dispatchEvent(new Event("evokey-key"));
  throw new ApiError(answer.status, told.error ?? "Failed", told.message ?? `The service answered ${answer.status}.`);
}

const inside = (path) => `v1/collections/${encodeURIComponent(state.collection)}/${path}`;
const asQuery = (query) => {
  const said = new URLSearchParams(Object.entries(query).filter(([, value]) => value !== undefined && value !== ""));
  return said.size ? `?${said}` : "";
};

export const root = async (path) => (await request("GET", path)).json();
export const get = async (path, query = {}, signal) => (await request("GET", inside(path) + asQuery(query), null, signal)).json();
export const post = async (path, body = {}, signal) => (await request("POST", inside(path), body, signal)).json();
export const remove = async (path, query) => (await request("DELETE", inside(path) + asQuery(query))).json();

export const may = (scope) => {
  const scopes = state.who?.scopes ?? [];
  const implied = { read: ["teach", "teach-as", "admin"], teach: ["teach-as", "admin"], admin: [] };
  return scopes.includes(scope) || (implied[scope] ?? []).some((one) => scopes.includes(one));
};

// The proposal that is compared before it is published; null: there is none, or it is not for this key.
export const getCandidate = async () => (isLayer() ? null : (await get("candidate").catch(() => ({ candidate: null }))).candidate);

// An answer, piece by piece; returns the whole.
export async function ask(query, onPiece, signal) {
  const answer = await request("POST", inside("ask"), { query, stream: true }, signal);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiError(0, "BrokenOff", "The answer broke off. Ask again.");
    rest += value;
    const events = rest.split("\n\n");
    rest = events.pop();
    for (const event of events) {
      const [name, data] = event.split("\n");
      const told = JSON.parse(data.slice("data: ".length));
      if (name === "event: error") throw new ApiError(told.status, told.error, told.message);
      if (name === "event: answer") return told;
      onPiece(told.text);
    }
  }
}

// Waits for a job, telling how far it is.
export async function follow(job, onProgress) {
  while (job.ended === null) {
    onProgress(job);
    await new Promise((resolve) => setTimeout(resolve, 400));
    job = await get(`jobs/${job.id}`);
  }
  if (job.error) throw new ApiError(0, "JobFailed", job.error);
  return job;
}
