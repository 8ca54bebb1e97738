// Requests to this server, and the three ways in which they fail.

/** The server understood, and said no: to send the same again will not help. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** Nobody answered, or the answer was "later": to send the same again may help. */
export class Unreachable extends Error {
  constructor(message, wait = 0) {
    super(message);
    this.wait = wait;
  }
}

/** The invitation has ended, or was taken back. */
export class SignedOut extends Error {}

const PATIENCE = 15_000;

let csrf = "";
let ahead = 0; // how far the server's clock is ahead of this one

/** The time by the server's clock, in seconds: leases are counted by it. */
export function serverTime() {
  return (Date.now() + ahead) / 1000;
}

export async function getSession() {
  const session = await get("/api/session");
  csrf = session.csrf;
  return session;
}

/** The JSON at a path, or null where there is none (204). */
export function get(path) {
  return request(path, { headers: { Accept: "application/json" } });
}

/** Sends a body. A server that was started again has another CSRF value: it is asked for once. */
export async function post(path, body) {
  try {
    return await send(path, body);
  } catch (error) {
    if (!(error instanceof Refused) || error.status !== 403) throw error;
    const before = csrf;
    await getSession();
    if (csrf === before) throw error;
    return send(path, body);
  }
}

function send(path, body) {
  const text = JSON.stringify(body);
  return request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Likewise-CSRF": csrf },
    body: text,
    keepalive: text.length < 60_000, // goes on when the page is closed; browsers allow 64 kB
  });
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, {
      ...options,
      credentials: "same-origin",
      signal: AbortSignal.timeout(PATIENCE),
    });
  } catch (error) {
    throw new Unreachable(String(error?.message ?? error));
  }
  const date = Date.parse(response.headers.get("Date") ?? "");
  if (date && response.headers.get("Age") === null) ahead = date - Date.now();
  if (response.status === 204) return null;
  let reply = null;
  try {
    reply = await response.json();
  } catch (error) {
    // Cut off on the way: nobody knows whether it arrived, so it is sent again, with the same id.
    if (response.ok) throw new Unreachable(String(error?.message ?? error));
  }
  if (response.ok) return reply;
  const why = typeof reply?.error === "string" ? reply.error : `status ${response.status}`;
  if (response.status === 401) throw new SignedOut(why);
  if (response.status >= 500 || response.status === 429 || response.status === 408) {
    throw new Unreachable(why, Number(response.headers.get("Retry-After")) || 0);
  }
  throw new Refused(response.status, why);
}

/** A name for a fact that nobody else will make up. */
export function newId() {
  // randomUUID exists on https and on this machine only; a team's server may be plain http.
  if (typeof crypto.randomUUID === "function") return crypto.randomUUID();
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const digits = [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

/** The address of an item's picture at another size. */
export function sized(image, size) {
  const url = new URL(image, location.href);
  url.searchParams.set("size", String(size));
  return url.pathname + url.search;
}

/** Where an item's picture is. */
export function imageOf(key, size = 160) {
  return `/image?${new URLSearchParams({ key, size })}`;
}
