/** What tests of commands share: a workspace in a scratch folder, looking for survivors, a fresh Node process. */
import assert from 'node:assert/strict';
import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { NodeWorkspace, type NodeWorkspaceOptions } from 'croft';

export const PACKAGE = fileURLToPath(new URL('..', import.meta.url));

export interface Scratch {
  root: string;
  ws: NodeWorkspace;
}

export async function withWorkspace<T>(use: (scratch: Scratch) => Promise<T>, options: Partial<NodeWorkspaceOptions> = {}): Promise<T> {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'croft-process-')));
  const ws = new NodeWorkspace({ root, ...options });
  try {
    return await use({ root, ws });
  } finally {
    await ws.close();
    rmSync(root, { recursive: true, force: true });
  }
}

let marks = 0;

/** Seconds for `sleep` that no other process on the machine sleeps for. */
export function uniqueSeconds(): string {
  return `${100_000 + process.pid}.${marks++}`;
}

/** How many living processes have `mark` among their arguments. */
export function alive(mark: string): number {
  const lines = readdirSync('/proc').filter((name) => /^\d+$/.test(name)).map(commandLine);
  return lines.filter((words) => words.includes(mark)).length;
}

function commandLine(pid: string): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8').split('\0');
  } catch {
    return [];
  }
}

/** Waits until `condition` holds; fails rather than hang. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>, withinMs = 10_000): Promise<void> {
  const deadline = Date.now() + withinMs;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `did not happen within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** Runs an ES module text in a Node process of its own, where `croft` is this package. */
export function freshNode(script: string, env: Record<string, string> = {}, command: string[] = []): SpawnSyncReturns<string> {
  const words = [...command, process.execPath, '--input-type=module', '--eval', script];
  const own: NodeJS.ProcessEnv = { ...process.env, ...env };
  delete own['NODE_TEST_CONTEXT'];
  return spawnSync(words[0] ?? '', words.slice(1), { cwd: PACKAGE, env: own, encoding: 'utf8', timeout: 60_000 });
}
