// Processes of bench/broker: each proxy on one core, the load and the upstream on another; CPU time and memory as /proc has them.
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import net from 'node:net';
import { fileURLToPath } from 'node:url';

const TICKS_PER_SECOND = 100;
const PROXY_CORE = '0';
const LOAD_CORE = '1';
export const root = fileURLToPath(new URL('../..', import.meta.url));

export const example = (name) => `${root}target/release/examples/${name}`;

export function startProxy([command, args], stdio = ['ignore', 'ignore', 'ignore']) {
  return pinned(PROXY_CORE, command, args, stdio);
}

export function startUpstream(args) {
  return pinned(LOAD_CORE, example('bench_net'), args, ['ignore', 'ignore', 'ignore']);
}

function pinned(core, command, args, stdio) {
  return spawn('taskset', ['-c', core, command, ...args.map(String)], { stdio });
}

export async function listening(port) {
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
export function family(pid) {
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

/** One run of the load; what it prints. */
export async function load(...args) {
  const child = pinned(LOAD_CORE, example('bench_net'), args, ['ignore', 'pipe', 'pipe']);
  let [text, errors] = ['', ''];
  child.stderr.on('data', (piece) => (errors += piece));
  for await (const piece of child.stdout) text += piece;
  if (text === '') throw new Error(`bench_net ${args.join(' ')}: ${errors.trim().slice(-200)}`);
  return JSON.parse(text);
}

/** The same, with the CPU seconds that `pid` and its children took meanwhile. */
export async function measured(pid, ...args) {
  const before = cpuSeconds(pid);
  const result = await load(...args);
  return { ...result, cpu: cpuSeconds(pid) - before };
}

export function end(child) {
  for (const pid of family(child.pid).reverse()) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It ended by itself.
    }
  }
}
