/** The engine that the Docker tests use: found once, asked over its API, looked at for what was left behind. */
import assert from 'node:assert/strict';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { SandboxShell, SubprocessSandbox, type ExecOptions, type SandboxResult, type SubprocessSandboxOptions } from 'croft';

const SOCKET = (process.env['DOCKER_HOST'] ?? 'unix:///var/run/docker.sock').replace('unix://', '');

export interface Answer {
  status: number;
  body: any;
}

export async function api(method: string, path: string, body?: unknown, socketPath = SOCKET): Promise<Answer> {
  const text = body === undefined ? '' : JSON.stringify(body);
  const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) };
  return await new Promise((resolve, reject) => {
    const call = request({ socketPath, method, path, headers }, (response) => {
      let answer = '';
      response.setEncoding('utf8').on('data', (piece: string) => (answer += piece));
      response.on('end', () => resolve({ status: response.statusCode ?? 0, body: parsed(answer) }));
    });
    call.on('error', reject);
    call.end(text);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

async function reachable(): Promise<boolean> {
  if (!existsSync(SOCKET)) return false;
  const answer = await api('GET', '/_ping').catch(() => undefined);
  return answer?.status === 200;
}

const found = await reachable();
if (!found) {
  const message = `NO DOCKER ENGINE at ${SOCKET}: the Docker tests are skipped. CROFT_REQUIRE_DOCKER=1 makes this a failure.`;
  assert.notEqual(process.env['CROFT_REQUIRE_DOCKER'], '1', message);
  console.error(`\n${'='.repeat(100)}\n${message}\n${'='.repeat(100)}\n`);
}

/** For `test` and `describe`. */
export const withEngine = { skip: !found && 'no Docker engine', timeout: 120_000 };

/** Busybox, as the engine script makes it. */
export const IMAGE = 'busybox:latest';
/** With bash, curl, git and node. */
export const TOOLS = 'tools:latest';

let count = 0;

/** A label that nothing else on the engine has. */
export function uniqueLabel(): Record<string, string> {
  return { 'com.lousho.test': `${process.pid}-${Date.now()}-${count++}` };
}

function filter(labels: Record<string, string>): string {
  const wanted = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  return encodeURIComponent(JSON.stringify({ label: wanted }));
}

export async function containersOf(labels: Record<string, string>): Promise<any[]> {
  return (await api('GET', `/containers/json?all=1&filters=${filter(labels)}`)).body;
}

export async function networksOf(labels: Record<string, string>): Promise<any[]> {
  return (await api('GET', `/networks?filters=${filter(labels)}`)).body;
}

export interface Docker {
  root: string;
  sandbox: SubprocessSandbox;
  shell: SandboxShell;
  labels: Record<string, string>;
}

/** A sandbox over a scratch directory. Afterwards nothing of it may be left on the engine. */
export async function withSandbox<T>(use: (docker: Docker) => Promise<T>, options: Partial<SubprocessSandboxOptions> = {}, below = ''): Promise<T> {
  const scratch = realpathSync(mkdtempSync(join(tmpdir(), 'croft-docker-')));
  const root = join(scratch, below);
  mkdirSync(root, { recursive: true });
  // Whoever the command runs as may enter.
  chmodSync(scratch, 0o755);
  const labels = uniqueLabel();
  const sandbox = new SubprocessSandbox({ image: IMAGE, labels, ...options });
  const shell = new SandboxShell(sandbox, { cwd: root });
  try {
    return await use({ root, sandbox, shell, labels });
  } finally {
    await sandbox.close();
    rmSync(scratch, { recursive: true, force: true });
    assert.deepEqual(await containersOf(labels), [], 'close() left a container');
    assert.deepEqual(await networksOf(labels), [], 'close() left a network');
  }
}

export async function run(command: string, exec: ExecOptions = {}, options: Partial<SubprocessSandboxOptions> = {}): Promise<SandboxResult> {
  return await withSandbox(async ({ shell }) => await shell.exec(command, { timeoutMs: 60_000, ...exec }), options);
}
