// One `true` in a container: to its result, and until the container is gone. Beside croft's three kinds: the bare calls
// of the Engine API (create, attach, start, wait, remove) with the same hardening, `docker run --rm`, and an exec in a
// container that lives on. Rounds are interleaved; the reference is the bare API.
//   node bench/sandbox.mjs          needs a Docker engine and busybox:latest
import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createCredentialBroker, NoopSandbox, SubprocessSandbox } from 'croft';
import { median, percentile, time } from './measure.mjs';

const socketPath = (process.env.DOCKER_HOST ?? 'unix:///var/run/docker.sock').replace('unix://', '');
const image = 'busybox:latest';
const rounds = Number(process.env.CROFT_BENCH_ROUNDS ?? 15);
const cwd = realpathSync(mkdtempSync(join(tmpdir(), 'croft-bench-')));
const labels = (kind) => ({ 'com.lousho.bench': `${process.pid}-${kind}` });

function call(method, path, body) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method, path, headers }, (response) => {
      let answer = '';
      response.setEncoding('utf8').on('data', (piece) => (answer += piece)).on('end', () => resolve(answer ? JSON.parse(answer) : undefined));
    });
    sent.on('error', reject).end(text);
  });
}

/** Resolves once the engine has confirmed, with the end of the stream. */
function upgraded(path, body) {
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = { connection: 'Upgrade', upgrade: 'tcp', 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  return new Promise((resolve, reject) => {
    const sent = request({ socketPath, method: 'POST', path, headers });
    sent.on('upgrade', (_response, socket) => resolve({ ended: new Promise((done) => socket.on('end', done).on('close', done).resume()) }));
    sent.on('response', (response) => resolve({ ended: new Promise((done) => response.resume().on('end', done)) }));
    sent.on('error', reject).end(text);
  });
}

const hardened = {
  NetworkMode: 'none', CapDrop: ['ALL'], SecurityOpt: ['no-new-privileges'], PidsLimit: 512, IpcMode: 'private', LogConfig: { Type: 'none' },
  Ulimits: [{ Name: 'core', Soft: 0, Hard: 0 }], Mounts: [{ Type: 'bind', Source: cwd, Target: cwd }],
};

async function bareApi() {
  const started = performance.now();
  const { Id: id } = await call('POST', '/containers/create', { Image: image, Cmd: ['sh', '-c', 'true'], WorkingDir: cwd, HostConfig: hardened });
  const { ended } = await upgraded(`/containers/${id}/attach?stream=1&stdout=1&stderr=1`);
  await call('POST', `/containers/${id}/start`);
  await Promise.all([call('POST', `/containers/${id}/wait`), ended]);
  const result = performance.now() - started;
  await call('DELETE', `/containers/${id}?force=1&v=1`);
  return { result, removed: performance.now() - started };
}

async function cli() {
  const started = performance.now();
  const child = spawn('docker', ['run', '--rm', '--network', 'none', '-v', `${cwd}:${cwd}`, '-w', cwd, image, 'sh', '-c', 'true'], { stdio: 'ignore' });
  await new Promise((resolve, reject) => child.on('exit', resolve).on('error', reject));
  const removed = performance.now() - started;
  return { result: removed, removed };
}

let longLived;
async function execInLongLived() {
  const started = performance.now();
  const { Id: id } = await call('POST', `/containers/${longLived}/exec`, { Cmd: ['sh', '-c', 'true'], AttachStdout: true, AttachStderr: true, WorkingDir: cwd });
  await (await upgraded(`/exec/${id}/start`, { Detach: false, Tty: false })).ended;
  const { ExitCode } = await call('GET', `/exec/${id}/json`);
  if (ExitCode !== 0) throw new Error(`exit code ${ExitCode}`);
  return { result: performance.now() - started };
}

const filter = (wanted) => encodeURIComponent(JSON.stringify({ label: Object.entries(wanted).map(([name, value]) => `${name}=${value}`) }));
const count = async (wanted, all) => (await call('GET', `/containers/json?all=${all}&filters=${filter(wanted)}`)).length;

async function until(condition) {
  while (!(await condition())) await new Promise((resolve) => setTimeout(resolve, 2));
}

function croft(sandbox, own) {
  return async () => {
    const started = performance.now();
    const { exitCode } = await sandbox.run({ command: 'sh', args: ['-c', 'true'], cwd });
    if (exitCode !== 0) throw new Error(`exit code ${exitCode}`);
    const result = performance.now() - started;
    if (!own) return { result };
    await until(async () => (await count(own, 1)) === 0);
    return { result, removed: performance.now() - started };
  };
}

/** Ready containers are there, and the engine has had a moment: what is measured is a command, not the refill. */
async function warm(own) {
  await until(async () => (await count(own, 0)) >= 2);
  await new Promise((resolve) => setTimeout(resolve, 400));
}

const broker = await createCredentialBroker({ rules: {} });
const make = (kind, options) => new SubprocessSandbox({ image, labels: labels(kind), ...options });
const sandboxes = {
  command: make('command', {}),
  pool: make('pool', { reuse: 'pool' }),
  egress: make('egress', { reuse: 'pool', broker, network: { allow: ['example.org'] } }),
  session: make('session', { reuse: 'session' }),
};
const host = new NoopSandbox();
({ Id: longLived } = await call('POST', '/containers/create', { Image: image, Cmd: ['sleep', '100000'], HostConfig: hardened }));
await call('POST', `/containers/${longLived}/start`);

const contestants = {
  'croft, a container per command': { run: croft(sandboxes.command, labels('command')) },
  'bare Engine API': { run: bareApi },
  'docker run --rm': { run: cli },
  'croft, from the pool': { run: croft(sandboxes.pool), before: () => warm(labels('pool')) },
  'croft, pool with an allow list': { run: croft(sandboxes.egress), before: () => warm(labels('egress')) },
  'exec in a long-lived container': { run: execInLongLived },
  'croft, in a session': { run: croft(sandboxes.session) },
  'croft, on the host': { run: croft(host) },
};

try {
  for (const { run } of Object.values(contestants)) await run();
  const samples = Object.fromEntries(Object.keys(contestants).map((name) => [name, []]));
  for (let round = 0; round < rounds; round++) {
    const order = Object.keys(contestants);
    if (round % 2 === 1) order.reverse();
    for (const name of order) {
      const { run, before } = contestants[name];
      await before?.();
      samples[name].push(await run());
    }
  }
  report(samples);
} finally {
  await Promise.all([...Object.values(sandboxes), host].map((sandbox) => sandbox.close()));
  await call('DELETE', `/containers/${longLived}?force=1`);
  await broker.close();
  rmSync(cwd, { recursive: true, force: true });
}

function report(samples) {
  const reference = samples['bare Engine API'];
  console.log(`one \`true\`, ${rounds} rounds, Node ${process.version}; median, 90th percentile, ratio to the bare Engine API by round`);
  for (const field of ['result', 'removed']) {
    console.log(`\nto ${field === 'result' ? 'its result' : 'the container gone'}`);
    for (const [name, taken] of Object.entries(samples)) {
      const values = taken.map((one) => one[field]);
      if (values.includes(undefined)) continue;
      const ratio = median(values.map((value, round) => value / reference[round][field]));
      console.log(`  ${name.padEnd(34)} ${time(median(values)).padStart(10)}  p90 ${time(percentile(values, 0.9)).padStart(10)}  ${ratio.toFixed(3)}`);
    }
  }
}
