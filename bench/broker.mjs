// The broker beside a bare hyper proxy (the floor), squid, tinyproxy, proxy-chain, and nginx for the path form; what is not
// installed is left out. CPU time per request first: on a shared machine it is the steadiest number.
//   node bench/broker.mjs [seconds] [subject]
import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const seconds = Number(process.argv[2] ?? 4);
const TICKS_PER_SECOND = 100;
const CONNECTIONS = 32;
const TUNNEL_MB = 2048;
const IDLE_TUNNELS = 1000;
// Below the ephemeral ports: a storm of CONNECTs leaves thousands of those in TIME_WAIT.
const [UPSTREAM, TLS] = [19_001, 19_002];
const folder = mkdtempSync(join(tmpdir(), 'croft-bench-broker-'));
const ca = join(folder, 'ca.pem');
// squid gives up root and still wants to write its pid file here.
chmodSync(folder, 0o777);

function example(name) {
  return join(root, 'target/release/examples', name);
}

function build() {
  const { status } = spawnSync('cargo', ['build', '-q', '--release', '--no-default-features', '--examples'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) process.exit(1);
}

/** proxy-chain in a folder of its own: it is no dependency of this package. */
function proxyChain() {
  const home = join(tmpdir(), 'croft-bench-proxy-chain');
  if (!existsSync(join(home, 'node_modules'))) {
    mkdirSync(home, { recursive: true });
    writeFileSync(join(home, 'package.json'), '{ "private": true, "type": "module" }\n');
    if (spawnSync('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', 'proxy-chain@2'], { cwd: home, stdio: 'ignore' }).status !== 0) return undefined;
  }
  writeFileSync(join(home, 'serve.mjs'), `import { Server } from 'proxy-chain';\nawait new Server({ port: Number(process.argv[2]), host: '127.0.0.1' }).listen();\n`);
  return join(home, 'serve.mjs');
}

function has(command) {
  return ['/usr/sbin', '/usr/bin', '/usr/local/sbin'].map((place) => join(place, command)).find(existsSync);
}

function config(name, text) {
  const file = join(folder, name);
  writeFileSync(file, text);
  return file;
}

const squidConfig = (port) => `http_port 127.0.0.1:${port}
http_access allow all
cache deny all
access_log none
cache_log /dev/null
pid_filename ${folder}/squid.pid
cache_effective_user proxy
shutdown_lifetime 0 seconds
pinger_enable off
memory_pools off
`;
const tinyConfig = (port) => `Port ${port}\nListen 127.0.0.1\nMaxClients 4096\nTimeout 600\nLogLevel Critical\nLogFile "${folder}/tiny.log"\nConnectPort ${UPSTREAM}\n`;
const nginxConfig = (port) => `worker_processes 1; daemon off; pid ${folder}/nginx.pid; error_log /dev/null crit; user root;
events { worker_connections 4096; }
http { access_log off; upstream up { server 127.0.0.1:${TLS}; keepalive 64; keepalive_requests 1000000; }
server { listen 127.0.0.1:${port}; keepalive_requests 1000000; location /__broker/localhost:${TLS}/ { proxy_pass https://up/; proxy_http_version 1.1;
proxy_set_header Connection ""; proxy_set_header Host localhost:${TLS}; proxy_set_header Authorization "Bearer 0123456789abcdef"; proxy_ssl_verify on;
proxy_ssl_trusted_certificate ${ca}; proxy_ssl_name localhost; proxy_ssl_server_name on; proxy_ssl_session_reuse on; } } }
`;

function subjects() {
  const chain = proxyChain();
  const all = [
    { name: 'broker (1,000 rules)', path: true, start: (port) => [example('bench_broker'), [port, UPSTREAM, TLS, ca]] },
    { name: 'bare hyper', start: (port) => [example('bare_proxy'), [port]] },
    { name: 'squid', needs: has('squid'), start: (port) => ['squid', ['-N', '-n', `croft${process.pid}`, '-f', config('squid.conf', squidConfig(port))]] },
    { name: 'tinyproxy', needs: has('tinyproxy'), start: (port) => ['tinyproxy', ['-d', '-c', config('tiny.conf', tinyConfig(port))]] },
    { name: 'proxy-chain', needs: chain, start: (port) => [process.execPath, [chain, port]] },
    { name: 'nginx', needs: has('nginx'), path: true, only: 'path', start: (port) => ['nginx', ['-c', config('nginx.conf', nginxConfig(port))]] },
  ];
  return all.filter((one) => (!('needs' in one) || one.needs) && one.name.includes(process.argv[3] ?? ''));
}

/** On one core, the load and the upstream on the others. */
function pinned(core, command, args) {
  return spawn('taskset', ['-c', core, command, ...args.map(String)], { stdio: ['ignore', 'pipe', 'ignore'] });
}

async function listening(port) {
  for (let tries = 0; tries < 1500; tries++) {
    const open = await new Promise((resolve) => {
      const socket = net.connect(port, '127.0.0.1');
      socket.on('connect', () => (socket.destroy(), resolve(true))).on('error', () => resolve(false));
    });
    if (open) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`nothing listens on ${port}`);
}

/** The process and all its descendants. */
function family(pid) {
  const parents = new Map();
  for (const name of readdirSync('/proc').filter((one) => /^\d+$/.test(one))) {
    try {
      parents.set(Number(name), Number(readFileSync(`/proc/${name}/stat`, 'utf8').split(') ')[1].split(' ')[1]));
    } catch {
      // It ended meanwhile.
    }
  }
  const found = [pid];
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child);
  return found;
}

function cpuSeconds(pid) {
  const ticks = family(pid).map((one) => readFileSync(`/proc/${one}/stat`, 'utf8').split(') ')[1].split(' '));
  return ticks.reduce((sum, fields) => sum + Number(fields[11]) + Number(fields[12]), 0) / TICKS_PER_SECOND;
}

async function load(...args) {
  const child = pinned('1', example('bench_net'), args);
  let text = '';
  for await (const piece of child.stdout) text += piece;
  if (text === '') throw new Error(`bench_net ${args.join(' ')} failed`);
  return JSON.parse(text);
}

async function measured(pid, ...args) {
  const before = cpuSeconds(pid);
  const result = await load(...args);
  return { ...result, cpu: cpuSeconds(pid) - before };
}

const rate = ({ requests, seconds: took }) => Math.round(requests / took);
const micros = ({ cpu, requests }) => ((cpu * 1e6) / requests).toFixed(1);

async function measure(subject, port) {
  const [command, args] = subject.start(port);
  const child = pinned('0', command, args);
  try {
    await listening(port);
    const proxy = `127.0.0.1:${port}`;
    const row = { subject: subject.name };
    if (subject.only !== 'path') {
      const plain = `http://localhost:${UPSTREAM}/`;
      await load('get', proxy, plain, 4, 1);
      const one = await load('get', proxy, plain, 1, Math.max(1, Math.floor(seconds / 2)));
      const many = await measured(child.pid, 'get', proxy, plain, CONNECTIONS, seconds);
      const connects = await measured(child.pid, 'connect', proxy, `localhost:${UPSTREAM}`, CONNECTIONS, seconds);
      const bulk = await measured(child.pid, 'tunnel', proxy, `localhost:${UPSTREAM}`, TUNNEL_MB);
      const idle = await load('idle', proxy, `localhost:${UPSTREAM}`, IDLE_TUNNELS, family(child.pid).join(','));
      Object.assign(row, { 'CPU us/GET': micros(many), 'GET/s': rate(many), 'p50 us, 1 conn': one.p50, 'CPU us/CONNECT': micros(connects), 'CONNECT/s': rate(connects), 'tunnel MB/s': Math.round(bulk.megabytes / bulk.seconds), 'CPU s/GB': ((bulk.cpu * 1024) / bulk.megabytes).toFixed(2), 'kB/idle tunnel': (idle.kib / idle.tunnels).toFixed(1) });
    }
    if (subject.path) {
      const target = `/__broker/localhost:${TLS}/x`;
      await load('get', proxy, target, 4, 1);
      const path = await measured(child.pid, 'get', proxy, target, CONNECTIONS, seconds);
      Object.assign(row, { 'CPU us/path GET': micros(path), 'path GET/s': rate(path) });
    }
    return row;
  } finally {
    for (const pid of family(child.pid).reverse()) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // It ended by itself.
      }
    }
  }
}

if (!process.env.CROFT_BENCH_BUILT) build();
const upstream = pinned('1', example('bench_net'), ['upstream', UPSTREAM, TLS, ca]);
try {
  await listening(UPSTREAM);
  const rows = [];
  let port = 19_010;
  for (const subject of subjects()) {
    try {
      rows.push(await measure(subject, port++));
    } catch (error) {
      rows.push({ subject: subject.name, failed: String(error.message) });
    }
  }
  const direct = await load('get', `127.0.0.1:${UPSTREAM}`, '/', 1, 1);
  console.table(rows.map(({ subject, ...row }) => ({ subject, ...row })));
  console.log(`direct p50 with 1 connection: ${direct.p50} us; bodies of 1 KB, ${CONNECTIONS} connections, the proxy on one core`);
} finally {
  upstream.kill('SIGKILL');
  rmSync(folder, { recursive: true, force: true });
}
