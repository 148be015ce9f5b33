// Writers in two processes, two worker threads each, edit the same few files through the tools: every edit that was
// reported as a success is in the file. CROFT_STALE_EDITS sets how many are tried.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { createFsTools, NodeWorkspace, WorkspaceError } from 'croft';

const EDITS = Number(process.env['CROFT_STALE_EDITS'] ?? 10_000);
const FILES = 3;
const WRITERS = 4;
const root = process.env['CROFT_TEST_STALE_ROOT'];
const self = fileURLToPath(import.meta.url);

/** Successes by file. */
type Counts = number[];

/** Each edit makes a counter in the file one larger; a lost update leaves it too small in the end. */
async function write(directory: string): Promise<Counts> {
  await using workspace = new NodeWorkspace({ root: directory });
  const tools = new Map(createFsTools(workspace, { staleCheck: true }).map((tool) => [tool.name, tool]));
  const done: Counts = Array.from({ length: FILES }, () => 0);
  for (let i = 0; i < EDITS / WRITERS; i++) {
    const file = i % FILES;
    const path = `f${file}`;
    try {
      const value = Number(/n=(\d+);/.exec(String(await tools.get('read_file')?.execute({ path })))?.[1]);
      const whole = i % 5 === 0;
      if (whole) await tools.get('write_file')?.execute({ path, content: `n=${value + 1};\n` });
      else await tools.get('edit_file')?.execute({ path, old_string: `n=${value};`, new_string: `n=${value + 1};` });
      done[file] = (done[file] ?? 0) + 1;
    } catch (error) {
      if (!(error instanceof WorkspaceError) || !['STALE', 'EDIT_NO_MATCH'].includes(error.code)) throw error;
    }
  }
  return done;
}

function inWorker(): Promise<Counts> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(self);
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

function inProcess(directory: string): Promise<Counts> {
  return new Promise((resolve, reject) => {
    const env: NodeJS.ProcessEnv = { ...process.env, CROFT_TEST_STALE_ROOT: directory };
    delete env['NODE_TEST_CONTEXT'];
    const child = spawn(process.execPath, [self], { env, stdio: ['ignore', 'pipe', 'inherit'] });
    let output = '';
    child.stdout.on('data', (piece) => (output += String(piece)));
    child.once('close', (code) => (code === 0 ? resolve(JSON.parse(output) as Counts) : reject(new Error(`exit code ${code}`))));
  });
}

const sum = (counts: Counts[]): Counts => Array.from({ length: FILES }, (_, file) => counts.reduce((total, one) => total + (one[file] ?? 0), 0));

if (root && !isMainThread) {
  parentPort?.postMessage(await write(root));
} else if (root) {
  process.stdout.write(JSON.stringify(sum(await Promise.all([inWorker(), inWorker()]))));
} else {
  test('no edit that was reported as a success is lost between threads and processes', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'croft-stale-'));
    try {
      for (let file = 0; file < FILES; file++) writeFileSync(join(directory, `f${file}`), 'n=0;\n');
      const reported = sum(await Promise.all([inProcess(directory), inProcess(directory)]));
      const found = Array.from({ length: FILES }, (_, file) => Number(/n=(\d+);/.exec(readFileSync(join(directory, `f${file}`), 'utf8'))?.[1]));
      assert.deepEqual(found, reported);
      assert.ok(reported.every((count) => count > 0));
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
}
