// The broker beside a bare hyper proxy (the floor), squid, tinyproxy, proxy-chain, and nginx for the path form; what is not
// installed is left out. CPU time per request first: on a shared machine it is the steadiest number. Then the broker in
// Node, whose header functions run on the event loop, and the targets against which all this is judged.
//   npm run build && node bench/broker.mjs [seconds] [subject]         some 4 minutes
import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { end, family, listening, load, measured, root, startProxy, startUpstream } from './broker/processes.mjs';
import { printFunctions, printSubjects, printTargets } from './broker/report.mjs';
import { BROKER, FLOOR, subjects } from './broker/subjects.mjs';

const seconds = Number(process.argv[2] ?? 4);
const wanted = process.argv[3] ?? '';
const CONNECTIONS = 32;
const TUNNEL_MB = 2048;
const IDLE_TUNNELS = 1000;
const STREAMS = 20;
// Below the ephemeral ports: a storm of CONNECTs leaves thousands of those in TIME_WAIT.
const [UPSTREAM, TLS] = [19_001, 19_002];
const PLAIN = `http://localhost:${UPSTREAM}`;
const TUNNEL = `localhost:${UPSTREAM}`;
const PATH = `/__broker/localhost:${TLS}`;
let port = 19_010;

const folder = mkdtempSync(join(tmpdir(), 'croft-bench-broker-'));
const ca = join(folder, 'ca.pem');
// squid gives up root and still wants to write its pid file here.
chmodSync(folder, 0o777);

const rate = ({ requests, seconds: took }) => requests / took;
const micros = ({ cpu, requests }) => (cpu * 1e6) / requests;

async function plain(pid, proxy) {
  await load('get', proxy, `${PLAIN}/`, 4, 1);
  const one = await load('get', proxy, `${PLAIN}/`, 1, Math.max(1, Math.floor(seconds / 2)));
  const many = await measured(pid, 'get', proxy, `${PLAIN}/`, CONNECTIONS, seconds);
  const connects = await measured(pid, 'connect', proxy, TUNNEL, CONNECTIONS, seconds);
  const bulk = await measured(pid, 'tunnel', proxy, TUNNEL, TUNNEL_MB);
  const idle = await load('idle', proxy, TUNNEL, IDLE_TUNNELS, family(pid).join(','));
  const sse = await load('sse', proxy, `${PLAIN}/sse`, STREAMS, seconds);
  return {
    getCpu: micros(many), getRate: rate(many), p50: one.p50, connectCpu: micros(connects), connectRate: rate(connects),
    tunnelRate: bulk.megabytes / bulk.seconds, tunnelCpu: (bulk.cpu * 1024) / bulk.megabytes, idleKb: idle.kib / idle.tunnels, sse,
  };
}

async function path(pid, proxy) {
  await load('get', proxy, `${PATH}/x`, 4, 1);
  const many = await measured(pid, 'get', proxy, `${PATH}/x`, CONNECTIONS, seconds);
  const sse = await load('sse', proxy, `${PATH}/sse`, STREAMS, seconds);
  return { pathCpu: micros(many), pathRate: rate(many), pathSse: sse };
}

async function measure(subject) {
  const at = port++;
  const child = startProxy(subject.start(at));
  try {
    await listening(at);
    const proxy = `127.0.0.1:${at}`;
    return { subject: subject.name, ...(subject.plain && (await plain(child.pid, proxy))), ...(subject.path && (await path(child.pid, proxy))) };
  } finally {
    end(child);
  }
}

/** What a header function costs in the user's own Node, and what 1,000 idle tunnels add to its memory. */
async function measureInNode(kind) {
  const at = port++;
  const child = startProxy([process.execPath, [join(root, 'bench/broker/in-node.mjs'), at, UPSTREAM, kind]], ['ignore', 'ignore', 'inherit', 'ipc']);
  const told = () => new Promise((resolve, reject) => child.once('message', resolve).once('exit', () => reject(new Error(`in-node ${kind} ended`))));
  const late = () => (child.send('late'), told());
  try {
    await told();
    const proxy = `127.0.0.1:${at}`;
    await load('get', proxy, `${PLAIN}/`, 4, 2);
    await late();
    const many = await measured(child.pid, 'get', proxy, `${PLAIN}/`, CONNECTIONS, seconds);
    const loop = await late();
    const idle = await load('idle', proxy, TUNNEL, IDLE_TUNNELS, child.pid);
    return { kind, getCpu: micros(many), getRate: rate(many), loop, rssGrowthMb: (idle.rss - loop.rssBefore / 1024) / 1024, idleKb: idle.kib / idle.tunnels };
  } finally {
    end(child);
  }
}

/** In turn; one that fails is reported and left out. */
async function each(list, name, work) {
  const rows = [];
  for (const one of list) {
    try {
      rows.push(await work(one));
    } catch (error) {
      console.error(`${name(one)}: ${error.message}`);
    }
  }
  return rows;
}

if (!process.env.CROFT_BENCH_BUILT) {
  const { status } = spawnSync('cargo', ['build', '-q', '--release', '--no-default-features', '--examples'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}
const upstream = startUpstream(['upstream', UPSTREAM, TLS, ca]);
try {
  await listening(UPSTREAM);
  const chosen = subjects({ folder, upstream: UPSTREAM, tls: TLS, ca }).filter(({ name }) => name.includes(wanted));
  const rows = await each(chosen, (one) => one.name, measure);
  const direct = { subject: 'no proxy', p50: (await load('get', TUNNEL, '/', 1, 2)).p50, sse: await load('sse', TUNNEL, '/sse', STREAMS, seconds) };
  const kinds = 'node'.includes(wanted) || BROKER.includes(wanted) ? ['fixed', 'sync', 'async', 'events'] : [];
  const inNode = await each(kinds, (kind) => `in Node, ${kind}`, measureInNode);
  printSubjects(rows, direct);
  printFunctions(inNode);
  const named = (name) => rows.find(({ subject }) => subject === name);
  printTargets({ broker: named(BROKER), floor: named(FLOOR), squid: named('squid'), tinyproxy: named('tinyproxy'), nginx: named('nginx'), direct, inNode });
} finally {
  end(upstream);
  rmSync(folder, { recursive: true, force: true });
}
