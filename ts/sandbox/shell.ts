/** A shell over any sandbox: what the command line and its environment become there. */
import { isInheritable } from '#native';
import { isAbsolute, join } from 'node:path';
import { z } from 'zod';
import { checkOptions, checkString, invalid } from '../check.js';
import { WorkspaceClosedError } from '../errors.js';
import type * as api from '../providers.js';
import { normalizeWorkspacePath } from '../text.js';
import { asWorkspaceError, checkEnv, DEFAULT_TIMEOUT_MS } from './adapter.js';

/** An adapter has this long to answer for an abort or a timeout; then it is not waited for. */
const PATIENCE_MS = 2_000;

const adapterSchema = z.custom<api.SandboxAdapter>(
  (value) => typeof value === 'object' && value !== null && typeof (value as api.SandboxAdapter).run === 'function',
  'expected a sandbox: an object with run()',
);

const optionsSchema = z.strictObject({
  cwd: z.string().refine(isAbsolute, 'expected an absolute path'),
  env: z.record(z.string(), z.string()).optional(),
  inheritEnv: z.union([z.array(z.string()), z.boolean()]).optional(),
});

type Settings = z.output<typeof optionsSchema>;

export class SandboxShell implements api.ShellProvider, AsyncDisposable {
  readonly #adapter: api.SandboxAdapter;
  readonly #settings: Settings;
  #closed = false;

  constructor(adapter: api.SandboxAdapter, options: api.SandboxShellOptions) {
    this.#adapter = checkOptions('SandboxShell: adapter', adapterSchema, adapter);
    this.#settings = checkOptions('SandboxShell', optionsSchema, options);
    checkEnv(this.#settings.env);
  }

  async exec(command: string | string[], options: api.ExecOptions = {}): Promise<api.SandboxResult> {
    if (this.#closed) throw new WorkspaceClosedError('the shell is closed: create a new one');
    const request = this.#request(command, options);
    if (options.signal?.aborted) return cutShort({ aborted: true });
    return await answered(this.#adapter, request);
  }

  async close(): Promise<void> {
    this.#closed = true;
    await this.#adapter.close?.();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  #request(command: string | string[], options: api.ExecOptions): api.SandboxRunOptions & { timeoutMs: number } {
    const [program, ...args] = words(command);
    if (program === undefined) throw invalid('command is an empty list: give the program and its arguments');
    const { cwd: root } = this.#settings;
    const below = normalizeWorkspacePath(options.cwd ?? '.');
    const { input, signal, onOutput } = options;
    const maxOutputBytes = options.capture?.maxBytes ?? options.maxOutputBytes;
    return {
      command: program,
      args,
      root,
      cwd: below === '.' ? root : join(root, below),
      env: { ...inherited(this.#adapter, this.#settings.inheritEnv), ...checkEnv(this.#settings.env), ...checkEnv(options.env) },
      // Always set: an adapter that ignores the signal still ends by itself.
      timeoutMs: options.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      ...(input !== undefined && { input }),
      ...(signal && { signal }),
      ...(maxOutputBytes !== undefined && { maxOutputBytes }),
      ...(onOutput && { onOutput }),
    };
  }
}

function words(command: string | string[]): string[] {
  if (Array.isArray(command)) {
    command.forEach((word, index) => checkString(`command[${index}]`, word));
    return command;
  }
  checkString('command', command);
  return ['sh', '-c', command];
}

/** A container never gets the host's whole environment: its PATH and HOME are the image's. */
function inherited({ kind }: api.SandboxAdapter, inheritEnv: Settings['inheritEnv']): Record<string, string> {
  if (inheritEnv === true) return kind === 'host' ? checkEnv(process.env as Record<string, string>) : {};
  const named = (inheritEnv || []).filter((name) => isInheritable(name) && process.env[name] !== undefined);
  return Object.fromEntries(named.map((name) => [name, process.env[name] ?? '']));
}

/** The adapter's answer, or one in its place when it does not obey an abort or the timeout. */
async function answered(adapter: api.SandboxAdapter, request: api.SandboxRunOptions & { timeoutMs: number }): Promise<api.SandboxResult> {
  const { signal, timeoutMs } = request;
  const timers: NodeJS.Timeout[] = [];
  let onAbort = (): void => {};
  const silent = new Promise<api.SandboxResult>((resolve) => {
    const after = (ms: number, result: api.SandboxResult): void => void timers.push(setTimeout(() => resolve(result), Math.min(ms, 2 ** 31 - 1)));
    onAbort = () => after(PATIENCE_MS, cutShort({ aborted: true }));
    signal?.addEventListener('abort', onAbort, { once: true });
    after(timeoutMs + STARTING_MS, cutShort({ timedOut: true }));
  });
  try {
    return await Promise.race([adapter.run(request), silent]);
  } catch (error) {
    throw asWorkspaceError(error);
  } finally {
    signal?.removeEventListener('abort', onAbort);
    timers.forEach(clearTimeout);
  }
}

/** The timeout counts from the command's start; before it a container may have to be started. */
const STARTING_MS = 60_000;

function cutShort(how: { timedOut?: true; aborted?: true }): api.SandboxResult {
  const note = how.aborted
    ? 'The command was aborted.'
    : 'The sandbox did not answer in time; its command may still be running there.';
  return { stdout: '', stderr: '', exitCode: 143, timedOut: how.timedOut ?? false, ...(how.aborted && { aborted: true }), truncated: false, droppedBytes: 0, durationMs: 0, note };
}
