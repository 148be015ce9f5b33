/** What a command becomes for a sandbox's adapter, how long its answer is waited for, and what is made of it. */
import { isInheritable, NativeCapture } from '#native';
import { callSync } from '../call.js';
import { checkString, invalid } from '../check.js';
import { WorkspaceError } from '../errors.js';
import { guarded } from '../process.js';
import type * as api from '../providers.js';
import { asWorkspaceError, checkEnv, checkWhole, DEFAULT_TIMEOUT_MS, MAX_OUTPUT_BYTES, MAX_TIMEOUT_MS } from './adapter.js';

/** An adapter has this long to answer for an abort; then it is not waited for. */
export const PATIENCE_MS = 2_000;
/** The timeout counts from the command's start; before it a container may have to be started. */
const STARTING_MS = 60_000;

/** What holds for every command of a shell or workspace. */
export interface Settings {
  env?: Record<string, string> | undefined;
  inheritEnv?: string[] | boolean | undefined;
  /** In the sandbox. */
  shell?: string | undefined;
}

/** Absolute paths; what else the adapter is told of where it runs. */
export interface Place {
  root: string;
  cwd: string;
  policy?: api.PolicySnapshot;
}

type What = Pick<api.SandboxRunOptions, 'command' | 'args' | 'cwd' | 'root' | 'env' | 'policy'>;

/** The program, where it runs, and all that it gets. */
export function whatToRun(adapter: api.SandboxAdapter, command: string | string[], place: Place, env: Record<string, string> | undefined, settings: Settings): What {
  const [program, ...args] = words(command, settings.shell ?? 'sh');
  if (program === undefined) throw invalid('command is an empty list: give the program and its arguments');
  return { command: program, args, ...place, env: { ...inherited(adapter, settings.inheritEnv), ...checkEnv(settings.env), ...checkEnv(env) } };
}

/** Runs it and answers as `exec` does, whatever the adapter makes of signal, timeout and budget. */
export async function ask(adapter: api.SandboxAdapter, what: What, options: api.ExecOptions): Promise<api.SandboxResult> {
  const { input, signal, onOutput, capture, timeoutMs = DEFAULT_TIMEOUT_MS } = options;
  const maxOutputBytes = capture?.maxBytes ?? options.maxOutputBytes ?? MAX_OUTPUT_BYTES;
  checkWhole('timeoutMs', timeoutMs, 1, MAX_TIMEOUT_MS);
  checkWhole('maxOutputBytes', maxOutputBytes, 0, Number.MAX_SAFE_INTEGER);
  if (signal?.aborted) return cutShort({ aborted: true });
  const shared = capture && new SharedHead(maxOutputBytes, onOutput && guarded(onOutput));
  const listener = shared ? shared.listener : onOutput && guarded(onOutput);
  const began = performance.now();
  const answer = await answered(adapter, {
    ...what,
    // Always set: an adapter that ignores the signal still ends by itself.
    timeoutMs,
    maxOutputBytes,
    ...(input !== undefined && { input }),
    ...(signal && { signal }),
    ...(listener && { onOutput: listener }),
  });
  const result = asResult(answer, began);
  return shared ? shared.apply(result) : within(result, maxOutputBytes);
}

function words(command: string | string[], shell: string): string[] {
  if (Array.isArray(command)) {
    command.forEach((word, index) => checkString(`command[${index}]`, word));
    return command;
  }
  checkString('command', command);
  return [shell, '-c', command];
}

/** Anything but a host gets nothing of the host's environment that was not named: its PATH and HOME are its own. */
function inherited({ kind }: api.SandboxAdapter, inheritEnv: Settings['inheritEnv']): Record<string, string> {
  if (inheritEnv === true) return kind === 'host' ? checkEnv(process.env as Record<string, string>) : {};
  const named = (inheritEnv || []).filter((name) => isInheritable(name) && process.env[name] !== undefined);
  return Object.fromEntries(named.map((name) => [name, process.env[name] ?? '']));
}

/** The adapter's answer, or one in its place when it does not obey an abort or the timeout. */
async function answered(adapter: api.SandboxAdapter, request: api.SandboxRunOptions & { timeoutMs: number }): Promise<unknown> {
  const { signal, timeoutMs } = request;
  const timers: NodeJS.Timeout[] = [];
  let onAbort = (): void => {};
  const silent = new Promise<api.SandboxResult>((resolve) => {
    const after = (ms: number, result: api.SandboxResult): void => void timers.push(setTimeout(() => resolve(result), Math.min(ms, MAX_TIMEOUT_MS)));
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

function cutShort(how: { timedOut?: true; aborted?: true }): api.SandboxResult {
  const note = how.aborted
    ? 'The command was aborted.'
    : 'The sandbox did not answer in time; its command may still be running there.';
  return { stdout: '', stderr: '', exitCode: 143, timedOut: how.timedOut ?? false, ...(how.aborted && { aborted: true }), truncated: false, droppedBytes: 0, durationMs: 0, note };
}

/** Other people's adapters leave out what they do not know; what they know wrongly is refused. */
function asResult(answer: unknown, began: number): api.SandboxResult {
  const given = (typeof answer === 'object' && answer !== null ? answer : {}) as Partial<api.SandboxResult>;
  const { stdout = '', stderr = '', exitCode } = given;
  if (typeof stdout !== 'string' || typeof stderr !== 'string' || !Number.isInteger(exitCode)) {
    throw new WorkspaceError('the sandbox failed: run() must resolve to { stdout, stderr, exitCode }, two strings and a whole number', 'SANDBOX_UNAVAILABLE');
  }
  const defaults = { timedOut: false, truncated: false, droppedBytes: 0, durationMs: performance.now() - began };
  return { ...defaults, ...given, stdout, stderr, exitCode: exitCode as number };
}

/** The budget of the caller, also when the adapter does not know it. */
function within(result: api.SandboxResult, maxOutputBytes: number): api.SandboxResult {
  const { stdout, stderr } = result;
  if (Buffer.byteLength(stdout) <= maxOutputBytes && Buffer.byteLength(stderr) <= maxOutputBytes) return result;
  const capture = callSync(() => new NativeCapture(maxOutputBytes, false));
  return captured(result, capture, result.droppedBytes ?? 0);
}

function captured(result: api.SandboxResult, capture: NativeCapture, droppedBefore: number): api.SandboxResult {
  capture.push('stdout', result.stdout);
  capture.push('stderr', result.stderr);
  const { stdout, stderr, droppedBytes } = capture.finish();
  return { ...result, stdout, stderr, droppedBytes: droppedBytes + droppedBefore, truncated: result.truncated === true || droppedBytes > 0 };
}

type Listener = NonNullable<api.ExecOptions['onOutput']>;

/** One budget for both streams in order of arrival, which only the live output shows. */
class SharedHead {
  readonly listener: Listener;
  readonly #capture: NativeCapture;
  #heard = false;

  constructor(maxBytes: number, onOutput: Listener | undefined) {
    this.#capture = callSync(() => new NativeCapture(maxBytes, true));
    this.listener = (piece) => {
      this.#heard = true;
      this.#capture.push(piece.stream, piece.text);
      onOutput?.(piece);
    };
  }

  apply(result: api.SandboxResult): api.SandboxResult {
    if (!this.#heard) return captured(result, this.#capture, result.droppedBytes ?? 0);
    return captured({ ...result, stdout: '', stderr: '', truncated: false }, this.#capture, 0);
  }
}
