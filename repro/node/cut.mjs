#!/usr/bin/env node
// A client of the control API in another language: nothing but Node's own fetch (Node 18 or newer).
//
//   LAB_TOKEN=... node repro/node/cut.mjs http://127.0.0.1:8474 [SERVER_PORT]
//   LAB_TOKEN=... LAB_URL=http://127.0.0.1:8474 node repro/node/cut.mjs
//
// Lists the flows that pass the router, cuts the newest one, waits until packets of it are lost, heals it, and reads the
// verdict. Exits with 0 if the hole was a hole, 1 if that could not be proved, 2 if the controller refused or is not there.

const [base = process.env.LAB_URL, port] = process.argv.slice(2);
const LOST = 3; // packets, after which the hole has been seen
const CALM_MS = 1100; // the verdict wants a second of capture before the cut
const PATIENCE_MS = 30_000;

async function ask(method, path, body) {
  const answer = await fetch(new URL(path, base), {
    method,
    headers: { authorization: `Bearer ${process.env.LAB_TOKEN}`, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  const said = await answer.json();
  // Errors are problem documents, RFC 9457.
  if (!answer.ok && path !== "/healthz") throw new Error(`${said.title} ${said.detail ?? ""} ${said.fix ?? ""}`);
  return said;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

async function until(what, look) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited ${PATIENCE_MS / 1000} s for ${what}`);
    await pause(100);
  }
}

const isMeant = (flow) => flow.state === "established" && (!port || flow.server.endsWith(`:${port}`));
const lost = ({ matched }) => matched.forward + matched.return;

async function main() {
  if (!base || !process.env.LAB_TOKEN) throw new Error("usage: LAB_TOKEN=... node cut.mjs URL [SERVER_PORT], or LAB_URL for the URL");
  await until("the capture", async () => (await ask("GET", "/healthz")).capture === "running");
  await pause(CALM_MS);

  const flow = await until("a flow", async () => (await ask("GET", "/flows")).flows.filter(isMeant).at(-1));
  console.log(`flow     ${flow.client} > ${flow.server}`);

  const { id } = await ask("POST", "/faults", { flow: { client: flow.client, server: flow.server } });
  try {
    const fault = await until("losses", async () => {
      const now = await ask("GET", `/faults/${id}`);
      return lost(now) >= LOST && now;
    });
    console.log(`cut      ${fault.age_s.toFixed(2)} s ago, ${lost(fault)} packets lost`);
  } finally {
    const { healed_after_s } = await ask("DELETE", `/faults/${id}`);
    console.log(`healed   after ${healed_after_s.toFixed(2)} s`);
  }

  const verdict = await ask("GET", `/faults/${id}/verdict`);
  for (const { name, ok, detail } of verdict.checks) console.log(`${ok ? "ok " : "NO "}      ${name}: ${detail}`);
  console.log(`verdict  ${verdict.outcome}${verdict.reason ? `: ${verdict.reason}` : ""}`);
  return verdict.outcome === "confirmed" ? 0 : 1;
}

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error.cause ? `${error.message}: ${error.cause.message}` : error.message);
  process.exitCode = 2;
}
