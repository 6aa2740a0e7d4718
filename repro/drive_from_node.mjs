// Cuts a flow from another language, over plain HTTP, and reads the verdict. Node 18 or later, no packages.
//
//     LAB_URL=http://127.0.0.1:8474 LAB_TOKEN=... node repro/drive_from_node.mjs
//
// Exit status: 0 where the hole was a hole and the flow came back, 1 where not, 2 where the lab refused.

const url = process.env.LAB_URL ?? "http://127.0.0.1:8474";
const headers = { Authorization: `Bearer ${process.env.LAB_TOKEN}`, "Content-Type": "application/json" };
const DARK_MS = 1500;
const LONGEST_MS = 20_000;

async function ask(method, path, body) {
  const answer = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const said = await answer.json();
  if (!answer.ok) {
    console.error(`${method} ${path}: ${said.title} ${said.detail} ${said.fix ?? ""}`);
    process.exit(2);
  }
  return said;
}

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

const fault = await ask("POST", "/faults", { select: { server_port: 5000, which: "newest" }, heal_after_s: 60 });
console.log(`cut    ${fault.flow.client} > ${fault.flow.server}`);
await pause(DARK_MS);
const healed = await ask("DELETE", `/faults/${fault.id}`);
console.log(`healed after ${healed.healed_after_s.toFixed(2)} s, ${healed.matched.forward} packets dropped on the way out`);

// The sender's next copy brings the flow back, which takes a while: its waits double.
let verdict;
const deadline = Date.now() + LONGEST_MS;
do {
  await pause(500);
  verdict = await ask("GET", `/faults/${fault.id}/verdict`);
} while (!verdict.came_back && Date.now() < deadline);

console.log(`${verdict.outcome}: ${verdict.reason ?? "the hole was a hole"}`);
console.log(`copies at ${verdict.forward.copy_times_s.map((s) => s.toFixed(2)).join(", ")} s after the cut`);
console.log(verdict.came_back ? `back at ${verdict.forward.back_s.toFixed(2)} s` : "it did not come back");
process.exitCode = verdict.outcome === "confirmed" && verdict.came_back ? 0 : 1;
