// @google/genai as it comes, told of every end that there is: a JSON line each.
//
//   node closes.mjs FOLDER URL CODE...
//
// FOLDER holds its node_modules. The server ends a session as its model's name says in the setup, and as a text says
// later. The SDK tells of an end by callbacks alone; what a promise does is beside that.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, baseUrl, ...codes] = process.argv.slice(2);
const require = createRequire(`${folder}/`);
const { GoogleGenAI, Modality } = await import(pathToFileURL(require.resolve("@google/genai")));
const release = require("./package.json").dependencies["@google/genai"];

// How long after onclose something more may come: a promise that settles, or a second callback.
const AFTER_MS = 1500;
const DEADLINE_MS = 60_000;
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

function worded(error) {
  return `${error?.constructor?.name ?? typeof error}: ${error?.message ?? error}`;
}

async function within(promise, what) {
  return Promise.race([promise, pause(DEADLINE_MS).then(() => Promise.reject(new Error(`${what} did not come`)))]);
}

async function settled(promise, closed) {
  const late = closed.then(() => pause(AFTER_MS)).then(() => ({ said: "not settled" }));
  const ended = promise.then((value) => ({ value, said: "no error" }), (error) => ({ said: worded(error) }));
  return within(Promise.race([ended, late]), "neither an answer nor an end");
}

function send(session) {
  try {
    session.sendRealtimeInput({ text: "late" });
    return "no error";
  } catch (error) {
    return worded(error);
  }
}

async function row(phase, wish, by, code) {
  const ends = [];
  let tell;
  const closed = new Promise((resolve) => (tell = resolve));
  const callbacks = {
    onmessage: () => {},
    onerror: (event) => ends.push(`onerror: ${event?.message ?? event?.type}`),
    onclose: (event) => tell(ends.push(`onclose: ${event.code}`)),
  };
  const client = new GoogleGenAI({ apiKey: "any", httpOptions: { baseUrl } });
  const config = { responseModalities: [Modality.AUDIO] };
  const model = phase === "setup" ? wish : "m";
  const connected = await settled(client.live.connect({ model, config, callbacks }), closed);
  let sender = "-";
  if (connected.value !== undefined) {
    if (by === "us") connected.value.close();
    else if (phase === "open") connected.value.sendRealtimeInput({ text: wish });
    await within(closed, "onclose");
    sender = send(connected.value);
  }
  await within(closed, "onclose");
  await pause(AFTER_MS);
  return { phase, code, by, connect: connected.said, reader: ends.join(", "), sender };
}

const asked = ["setup", "open"].flatMap((phase) => codes.map((code) => [phase, `end ${code}`, "server", Number(code)]));
asked.push(["setup", "vanish", "network", 1006], ["open", "vanish", "network", 1006], ["open", "", "us", 1000]);
for (const found of await Promise.all(asked.map((one) => row(...one)))) {
  console.log(JSON.stringify({ event: "row", release, ...found }));
}
process.exit(0);
