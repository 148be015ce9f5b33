/** A second engine of a test's own, which may be killed: the shared one serves other tests meanwhile. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import type { TestContext } from 'node:test';
import { api, IMAGE } from './docker.js';
import { eventually } from './processes.js';

const CONTAINERD = '/run/containerd/containerd.sock';
const FOLDERS = [...(process.env['PATH'] ?? '').split(delimiter), '/opt/docker-engine/usr/sbin', '/usr/sbin'];

function dockerd(): string | undefined {
  return FOLDERS.map((folder) => join(folder, 'dockerd')).find((path) => existsSync(path));
}

export function whyNoPrivateEngine(): string | false {
  if (process.getuid?.() !== 0) return 'needs root, to start a second engine';
  if (!dockerd()) return 'needs dockerd, to start a second engine';
  if (spawnSync('unshare', ['--net', 'true']).status !== 0) return 'needs unshare and a network namespace, to start a second engine';
  return !existsSync(CONTAINERD) && 'needs containerd, to start a second engine';
}

export interface PrivateEngine {
  socketPath: string;
  restart(how: 'SIGTERM' | 'SIGKILL'): Promise<void>;
  containers(labels: Record<string, string>): Promise<any[]>;
}

export async function privateEngine(t: TestContext): Promise<PrivateEngine> {
  const folder = mkdtempSync(join(tmpdir(), 'croft-engine-'));
  const socketPath = join(folder, 'docker.sock');
  const name = `croft-test-${process.pid}`;
  const flags = ['--host', `unix://${socketPath}`, '--data-root', join(folder, 'data'), '--exec-root', join(folder, 'exec'), '--pidfile', join(folder, 'pid')];
  // In a network namespace of its own: an engine without a bridge removes docker0 where it finds one, and that would be
  // the shared engine's.
  const apart = ['--bridge', 'none', '--iptables=false', '--ip6tables=false', '--userland-proxy=false', '--containerd', CONTAINERD, '--containerd-namespace', name, '--containerd-plugins-namespace', `${name}-plugins`];
  let daemon: ChildProcess | undefined;
  const start = async (): Promise<void> => {
    daemon = spawn('unshare', ['--net', dockerd() ?? '', ...flags, ...apart], { stdio: 'ignore' });
    const up = async (): Promise<boolean> => (await api('GET', '/_ping', undefined, socketPath).catch(() => undefined))?.status === 200;
    await eventually('the second engine is up', up, 60_000);
  };
  const stop = async (how: 'SIGTERM' | 'SIGKILL'): Promise<void> => {
    const gone = new Promise((resolve) => daemon?.on('exit', resolve));
    daemon?.kill(how);
    await gone;
    rmSync(join(folder, 'pid'), { force: true });
  };
  await start();
  t.after(async () => {
    await stop('SIGTERM');
    // The daemon binds its data folder onto itself, and leaves that behind when it was killed once.
    spawnSync('umount', ['--recursive', '--lazy', join(folder, 'data')], { stdio: 'ignore' });
    rmSync(folder, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
  });
  await copyImage(socketPath);
  return {
    socketPath,
    restart: async (how) => {
      await stop(how);
      await start();
    },
    containers: async (labels) => {
      const label = Object.entries(labels).map(([key, value]) => `${key}=${value}`);
      return (await api('GET', `/containers/json?all=1&filters=${encodeURIComponent(JSON.stringify({ label }))}`, undefined, socketPath)).body;
    },
  };
}

/** From the shared engine, since nothing can be pulled. */
async function copyImage(socketPath: string): Promise<void> {
  const shared = (process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock').replace('unix://', '');
  await new Promise<void>((resolve, reject) => {
    const load = request({ socketPath, method: 'POST', path: '/images/load?quiet=1', headers: { 'content-type': 'application/x-tar' } }, (response) => {
      response.resume().on('end', resolve);
    });
    load.on('error', reject);
    request({ socketPath: shared, method: 'GET', path: `/images/${IMAGE}/get` }, (response) => response.pipe(load)).on('error', reject).end();
  });
}
