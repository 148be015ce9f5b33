/** `croft/testing`: what any SandboxAdapter must do, as cases for any test runner. croft's own run them all. */
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { SandboxAdapter, SandboxExit, SandboxProcess, SandboxResult, SandboxRunOptions, SandboxSpawnOptions } from '../providers.js';

export interface SandboxCase {
  name: string;
  /** Only for adapters that have it; see {@link sandboxCasesFor}. */
  needs?: 'spawn';
  /** Throws when the adapter does not conform. */
  run(adapter: SandboxAdapter): Promise<void>;
}

interface Spawned {
  process: SandboxProcess;
  output: { stdout: string; stderr: string };
  exit(): Promise<SandboxExit>;
}

type Check = (sandbox: Bench) => Promise<void>;

/** Generous: the cases ask that nothing hangs, not how fast it is. */
const SOON_MS = 20_000;

/** An adapter and a directory of the host that it is given. */
class Bench {
  readonly cwd = realpathSync(mkdtempSync(join(tmpdir(), 'croft-conformance-')));

  constructor(readonly adapter: SandboxAdapter) {}

  /** A command line; the adapters know programs only. */
  sh(line: string, options: Partial<SandboxRunOptions> = {}): Promise<SandboxResult> {
    return this.adapter.run({ command: 'sh', args: ['-c', line], cwd: this.cwd, timeoutMs: SOON_MS, ...options });
  }

  /** What it has written so far is in `output`. */
  async spawn(line: string, options: Partial<SandboxSpawnOptions> = {}): Promise<Spawned> {
    assert.ok(this.adapter.spawn, 'the adapter has no spawn()');
    const output = { stdout: '', stderr: '' };
    const onOutput: SandboxSpawnOptions['onOutput'] = ({ stream, text }) => void (output[stream] += text);
    const process = await settlesSoon('a start', this.adapter.spawn({ command: 'sh', args: ['-c', line], cwd: this.cwd, onOutput, ...options }));
    return { process, output, exit: async () => await settlesSoon('the end', process.exited) };
  }

  dispose(): void {
    rmSync(this.cwd, { recursive: true, force: true });
  }
}

async function settlesSoon<T>(what: string, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} did not settle within ${SOON_MS} ms`)), SOON_MS);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}

const checks: Record<string, Check> = {
  'a result has every field, with its type': async (bench) => {
    const result = await bench.sh('echo out; echo err >&2');
    const { stdout, stderr, exitCode, timedOut, truncated, droppedBytes } = result;
    assert.deepEqual({ stdout, stderr, exitCode, timedOut, truncated, droppedBytes }, { stdout: 'out\n', stderr: 'err\n', exitCode: 0, timedOut: false, truncated: false, droppedBytes: 0 });
    assert.equal(typeof result.durationMs, 'number');
    assert.equal(result.aborted ?? false, false);
    assert.equal(result.oomKilled ?? false, false);
  },

  'a program gets its arguments as they are, without a shell between': async (bench) => {
    const args = ['-c', 'for word in "$@"; do printf "[%s]" "$word"; done', 'name', 'a b', '', '$HOME', '*', "it's", 'ünï'];
    const { stdout } = await bench.adapter.run({ command: 'sh', args, cwd: bench.cwd, timeoutMs: SOON_MS });
    assert.equal(stdout, "[a b][][$HOME][*][it's][ünï]");
  },

  'exit codes are exact, and a command that is not found is 127': async (bench) => {
    for (const code of [0, 1, 42, 255]) assert.equal((await bench.sh(`exit ${code}`)).exitCode, code);
    const missing = await bench.sh('no-such-command-anywhere');
    assert.equal(missing.exitCode, 127);
    assert.match(missing.stderr, /not found/);
    assert.equal((await bench.sh('/')).exitCode, 126);
  },

  'a command killed by a signal is 128 and the number of the signal': async (bench) => {
    const killed = await bench.sh('kill -9 $$; echo survived');
    assert.deepEqual([killed.exitCode, killed.signal, killed.stdout], [137, 'SIGKILL', '']);
    const ended = await bench.sh('kill -TERM $$; echo survived');
    assert.deepEqual([ended.exitCode, ended.stdout], [143, '']);
  },

  'a program that is not there is an error that names it': async (bench) => {
    const run = bench.adapter.run({ command: 'no-such-program-anywhere', cwd: bench.cwd, timeoutMs: SOON_MS });
    await assert.rejects(run, /no-such-program-anywhere/);
  },

  'both streams are kept apart and whole, early output included': async (bench) => {
    const { stdout, stderr } = await bench.sh('i=0; while [ $i -lt 2000 ]; do echo out$i; echo err$i >&2; i=$((i+1)); done');
    const lines = (word: string): string => Array.from({ length: 2000 }, (_, i) => `${word}${i}\n`).join('');
    assert.equal(stdout, lines('out'));
    assert.equal(stderr, lines('err'));
  },

  'a character split over two writes stays whole': async (bench) => {
    const { stdout } = await bench.sh("printf '\\342\\202'; sleep 0.2; printf '\\254\\n'");
    assert.equal(stdout, '€\n');
  },

  'output over maxOutputBytes keeps its head and tail and counts the rest': async (bench) => {
    const result = await bench.sh('i=0; while [ $i -lt 20000 ]; do echo line$i; i=$((i+1)); done', { maxOutputBytes: 2000 });
    assert.ok(Buffer.byteLength(result.stdout) <= 2000);
    assert.ok(result.stdout.startsWith('line0\n') && result.stdout.endsWith('line19999\n'));
    assert.equal(result.truncated, true);
    assert.ok((result.droppedBytes ?? 0) > 150_000);
  },

  'onOutput hears everything, in order for each stream': async (bench) => {
    const heard = { stdout: '', stderr: '' };
    const result = await bench.sh('echo a; echo b >&2; echo c', { onOutput: ({ stream, text }) => void (heard[stream] += text) });
    assert.deepEqual(heard, { stdout: result.stdout, stderr: result.stderr });
    assert.equal(heard.stdout, 'a\nc\n');
  },

  'stdin is at its end unless input is given': async (bench) => {
    assert.deepEqual((({ stdout, exitCode }) => ({ stdout, exitCode }))(await bench.sh('cat; echo end')), { stdout: 'end\n', exitCode: 0 });
  },

  'input arrives whole, text or bytes, and one that is not read does no harm': async (bench) => {
    assert.equal((await bench.sh('cat', { input: 'ünï\n' })).stdout, 'ünï\n');
    assert.equal((await bench.sh('cat', { input: new Uint8Array([104, 105]) })).stdout, 'hi');
    const large = 'x'.repeat(1 << 20);
    assert.equal((await bench.sh('wc -c', { input: large })).stdout.trim(), String(large.length));
    assert.equal((await bench.sh('exit 3', { input: large })).exitCode, 3);
  },

  'the directory is the same path inside, and changes are seen on both sides': async (bench) => {
    writeFileSync(join(bench.cwd, 'from-host'), 'one');
    const { stdout } = await bench.sh('pwd; cat from-host; printf two > from-inside');
    assert.equal(stdout, `${bench.cwd}\none`);
    assert.equal(readFileSync(join(bench.cwd, 'from-inside'), 'utf8'), 'two');
  },

  'a cwd below the root starts there': async (bench) => {
    mkdirSync(join(bench.cwd, 'a b'));
    writeFileSync(join(bench.cwd, 'above'), 'seen');
    const { stdout } = await bench.sh('pwd; cat ../above', { root: bench.cwd, cwd: join(bench.cwd, 'a b') });
    assert.equal(stdout, `${join(bench.cwd, 'a b')}\nseen`);
  },

  'a cwd that does not exist is an error, and is not made': async (bench) => {
    const cwd = join(bench.cwd, 'missing');
    await assert.rejects(bench.sh('true', { cwd }), /missing/);
    assert.throws(() => readFileSync(cwd), { code: 'ENOENT' });
  },

  'env reaches the command as it is, and nothing of a container comes from the host': async (bench) => {
    const env = { CROFT_A: 'x y', CROFT_EMPTY: '', CROFT_LINES: 'a\nb', CROFT_QUOTES: '\'"$`' };
    const { stdout } = await bench.sh('printf "%s|" "$CROFT_A" "${CROFT_EMPTY-unset}" "$CROFT_LINES" "$CROFT_QUOTES"', { env });
    assert.equal(stdout, 'x y||a\nb|\'"$`|');
    const { kind } = bench.adapter;
    if (kind !== 'host') assert.equal((await bench.sh('echo "${npm_execpath-none}${USERPROFILE-none}"')).stdout, 'nonenone\n');
  },

  'a name or value that no environment can hold is refused': async (bench) => {
    await assert.rejects(bench.sh('true', { env: { 'A=B': 'x' } }));
    await assert.rejects(bench.sh('true', { env: { A: 'x\0y' } }));
  },

  'a timeout ends the command and keeps its output so far': async (bench) => {
    const result = await settlesSoon('a timeout', bench.sh('echo a; echo b >&2; sleep 1000', { timeoutMs: 1500 }));
    assert.deepEqual([result.timedOut, result.stdout, result.stderr, result.oomKilled ?? false], [true, 'a\n', 'b\n', false]);
    assert.notEqual(result.exitCode, 0);
  },

  'a timeout ends what ignores SIGTERM or has left the session': async (bench) => {
    const marker = join(bench.cwd, 'alive');
    const line = `trap '' TERM; setsid sh -c 'trap "" TERM HUP; while true; do date > "${marker}"; sleep 0.1; done' & sleep 1000`;
    await settlesSoon('a timeout', bench.sh(line, { timeoutMs: 1500 }));
    await staysAway(marker);
  },

  'an abort settles with aborted and the output so far': async (bench) => {
    const controller = new AbortController();
    const onOutput = (): void => controller.abort();
    const result = await settlesSoon('an abort', bench.sh('echo started; sleep 1000', { signal: controller.signal, onOutput }));
    assert.deepEqual([result.aborted, result.stdout, result.timedOut], [true, 'started\n', false]);
  },

  'a signal that is already aborted starts nothing': async (bench) => {
    const result = await settlesSoon('an aborted call', bench.sh('touch ran', { signal: AbortSignal.abort() }));
    assert.equal(result.aborted, true);
    assert.ok(!exists(join(bench.cwd, 'ran')));
  },

  'a process left in the background does not hold the call up': async (bench) => {
    const result = await settlesSoon('the call', bench.sh('sleep 1000 & echo done'));
    assert.deepEqual([result.stdout, result.exitCode], ['done\n', 0]);
  },

  'calls at once do not mix': async (bench) => {
    const results = await Promise.all(Array.from({ length: 6 }, (_, i) => bench.sh(`echo ${i}; sleep 0.1; echo ${i} >&2; exit ${i}`)));
    results.forEach(({ stdout, stderr, exitCode }, i) => assert.deepEqual([stdout, stderr, exitCode], [`${i}\n`, `${i}\n`, i]));
  },
};

const spawnChecks: Record<string, Check> = {
  'a spawned command tells all its output, then its end': async (bench) => {
    const { output, exit, process } = await bench.spawn('cat; printf "%s\\n" "$PWD" "$CROFT_A"; echo err >&2; exit 5', { env: { CROFT_A: 'x y' } });
    const { exitCode, signal } = await exit();
    assert.deepEqual({ ...output, exitCode, signal }, { stdout: `${bench.cwd}\nx y\n`, stderr: 'err\n', exitCode: 5, signal: undefined });
    assert.ok(process.pid === undefined || process.pid > 0);
  },

  'output of a spawned command arrives while it runs, and a flood of it whole': async (bench) => {
    const { process, output, exit } = await bench.spawn('echo ready; while [ ! -e go ]; do sleep 0.1; done; i=0; while [ $i -lt 20000 ]; do echo line$i; i=$((i+1)); done');
    await eventually(async () => output.stdout === 'ready\n', 'the first line did not arrive');
    writeFileSync(join(bench.cwd, 'go'), '');
    assert.equal((await exit()).exitCode, 0);
    assert.equal(output.stdout, `ready\n${Array.from({ length: 20_000 }, (_, i) => `line${i}\n`).join('')}`);
    await settlesSoon('killing what has ended', process.kill());
  },

  'killing a spawned command ends what ignores SIGTERM or has left the session': async (bench) => {
    const marker = join(bench.cwd, 'alive');
    const { process, output, exit } = await bench.spawn(`trap '' TERM; setsid sh -c 'trap "" TERM HUP; while true; do date > "${marker}"; sleep 0.1; done' & echo up; sleep 1000`);
    await eventually(async () => output.stdout === 'up\n' && exists(marker), 'it did not come up');
    await settlesSoon('kill', Promise.all([process.kill(), process.kill()]));
    assert.notEqual((await exit()).exitCode, 0);
    await staysAway(marker);
  },

  'a spawned command that a signal ended is 128 and the number of the signal': async (bench) => {
    const { exit } = await bench.spawn('kill -9 $$; sleep 1000');
    assert.deepEqual((({ exitCode, signal }) => [exitCode, signal])(await exit()), [137, 'SIGKILL']);
  },

  'what cannot be spawned is an error that names it, and an aborted start starts nothing': async (bench) => {
    await assert.rejects(bench.spawn('', { command: 'no-such-program-anywhere', args: [] }), /no-such-program-anywhere/);
    await assert.rejects(bench.spawn('true', { cwd: join(bench.cwd, 'missing') }), /missing/);
    await assert.rejects(bench.spawn('true', { env: { 'A=B': 'x' } }));
    await assert.rejects(bench.spawn('touch ran', { signal: AbortSignal.abort() }));
    assert.ok(!exists(join(bench.cwd, 'ran')));
  },

  'commands run while a spawned one does, and do not mix with it': async (bench) => {
    const first = await bench.spawn('echo one; sleep 1000');
    const second = await bench.spawn('echo two; sleep 1000');
    assert.equal((await bench.sh('echo three')).stdout, 'three\n');
    await first.process.kill();
    await eventually(async () => second.output.stdout === 'two\n', 'the second did not come up');
    assert.equal((await bench.sh('echo four')).stdout, 'four\n');
    await second.process.kill();
    assert.deepEqual([first.output.stdout, second.output.stdout], ['one\n', 'two\n']);
  },
};

/** Whoever writes the marker is gone: it does not come back. */
async function staysAway(marker: string): Promise<void> {
  await eventually(async () => {
    rmSync(marker, { force: true });
    await new Promise((resolve) => setTimeout(resolve, 400));
    return !exists(marker);
  });
}

function exists(path: string): boolean {
  try {
    readFileSync(path);
    return true;
  } catch {
    return false;
  }
}

async function eventually(condition: () => Promise<boolean>, failure = 'a process of an ended command is still alive'): Promise<void> {
  const deadline = Date.now() + SOON_MS;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, failure);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}

function asCase([name, check]: [string, Check]): SandboxCase {
  const run = async (adapter: SandboxAdapter): Promise<void> => {
    const bench = new Bench(adapter);
    try {
      await check(bench);
    } finally {
      bench.dispose();
    }
  };
  return { name, run };
}

/**
 * One case per promise of `SandboxAdapter`. The adapter's image or machine needs `sh`, `cat`, `wc`, `sleep`, `setsid`,
 * `date`, and sees directories of this machine.
 */
export const sandboxCases: readonly SandboxCase[] = [
  ...Object.entries(checks).map(asCase),
  ...Object.entries(spawnChecks).map((entry) => ({ ...asCase(entry), needs: 'spawn' as const })),
];

/** Without the cases about what the adapter does not have. */
export function sandboxCasesFor(adapter: SandboxAdapter): SandboxCase[] {
  return sandboxCases.filter(({ needs }) => needs === undefined || typeof adapter[needs] === 'function');
}
